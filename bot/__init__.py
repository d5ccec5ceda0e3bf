"""The Slack bot. It knows the sizing service only by HTTP."""
