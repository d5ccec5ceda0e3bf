"""What people see: pure functions from the service's JSON to Block Kit, each within Slack's limits."""
