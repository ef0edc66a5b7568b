"""The five layers and the bridge: pure ASGI classes, each usable alone in front of any OpenAI-compatible app."""
