"""What operators do at the terminal of the service: tokens, audit, keeper. Each group is imported when it is used."""
