"""Elasticsearch and OpenSearch: documents with versions, in bulk requests."""
