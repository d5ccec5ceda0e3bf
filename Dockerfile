# Service and bot in one image: `trainmem serve` (the default) or `trainmem bot`.
FROM python:3.11-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/trainmem
COPY requirements.lock ./
RUN /opt/trainmem/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY service ./service
COPY bot ./bot
COPY migrations ./migrations
RUN /opt/trainmem/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /var/lib/trainmem --create-home trainmem
COPY --from=build /opt/trainmem /opt/trainmem
# Secrets (SLACK_…, a database URL with a password) come from the environment at run time, never from the image.
ENV PATH=/opt/trainmem/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TRAINMEM_BIND=0.0.0.0:8080 \
    TRAINMEM_BOT_BIND=0.0.0.0:3000 \
    TRAINMEM_DATABASE_URL=sqlite:////var/lib/trainmem/trainmem.db
USER 10001
WORKDIR /var/lib/trainmem
VOLUME /var/lib/trainmem
EXPOSE 8080 3000
# Ready means: the database answers, is at this release's revision, and the catalogue is loaded.
HEALTHCHECK --interval=10s --timeout=5s --start-period=40s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
CMD ["trainmem", "serve"]
