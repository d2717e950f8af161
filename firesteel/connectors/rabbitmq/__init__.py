"""RabbitMQ: queues that are logged and acknowledged with the checkpoint, and streams that are read by offset."""
