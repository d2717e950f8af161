"""MQTT: messages that are logged before they are acknowledged."""
