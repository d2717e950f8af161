"""The job manager: jobs as a service, its REST API and its web page."""
