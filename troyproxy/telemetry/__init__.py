"""What the gateway tells about itself: metrics, trace blocks, the access log, the last requests. It decides nothing."""
