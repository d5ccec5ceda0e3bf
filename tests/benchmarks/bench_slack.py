"""How fast the bot acknowledges: 50 commands a second for 30 seconds, real gunicorn, signed HTTP; all are answered.

Slack shows a failure after 3 s; we want 300 ms. The service is the fake, so that this measures the bot alone.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bot.wsgi import EVENTS_PATH
from tests.support.fake_service import FakeService
from tests.support.fake_slack import BOT_TOKEN, FakeSlack
from tests.support.slack_processes import bot_process, wait_until_bot_is_ready
from tests.support.slack_requests import SlackCaller

RATE_PER_S, DURATION_S = 50, 30
ACKNOWLEDGED_WITHIN_S = 0.3


def test_fifty_commands_a_second_are_acknowledged_at_once_and_all_answered() -> None:
    with FakeSlack() as slack, FakeService() as service:
        environment = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": "secret",
            "TRAINMEM_SLACK_API_URL": slack.api_url,
            "TRAINMEM_SERVICE_URL": service.url,
        }
        with bot_process(environment) as bot:
            wait_until_bot_is_ready(bot)
            took_s, urls = send_steadily(slack, SlackCaller(bot.url + EVENTS_PATH, "secret"))
            slack.wait_for(lambda fake: len(fake.received) > len(urls), timeout_s=30)  # and one auth.test
            delivered = sum(len(slack.messages(url)) for url in urls)
    slowest, median = took_s[-1], took_s[len(took_s) // 2]
    print(f"{len(took_s)} commands: acknowledged in {median * 1000:.0f} ms (median), {slowest * 1000:.0f} ms (slowest)")
    assert delivered == len(urls)
    assert slowest < ACKNOWLEDGED_WITHIN_S


def send_steadily(slack: FakeSlack, caller: SlackCaller) -> tuple[list[float], list[str]]:
    """Seconds to each acknowledgement, sorted, and the address of each answer."""
    urls = [slack.response_url() for _ in range(RATE_PER_S * DURATION_S)]
    started_s = time.monotonic()

    def send(number: int) -> float:
        time.sleep(max(0.0, started_s + number / RATE_PER_S - time.monotonic()))
        return caller.command("70B seq=8k mb=2 gpu=H100", urls[number]).took_s

    with ThreadPoolExecutor(32) as pool:
        return sorted(pool.map(send, range(len(urls)))), urls
