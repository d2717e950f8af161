"""The REST API: Flink's paths and shapes, with and without ``/v1``, and Firesteel's own below ``/firesteel/v1``."""

__all__: list[str] = []
