"""The HTTP edge: routes, the chat endpoint, the model list, health, metrics and the admin API."""
