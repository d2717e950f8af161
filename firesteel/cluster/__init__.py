"""The job manager: a small server that starts a driver process for each job, watches it, starts it again after a crash,
and answers with Flink's REST API. It never imports users' code: planner and drivers are processes of their own.

    firesteel cluster start
    firesteel run -d program.py
    firesteel list

The parts, from the ground up:

* :mod:`~firesteel.cluster.folders`: where everything lies;
* :mod:`~firesteel.cluster.registry`: what is known of jobs, attempts and operations (a port; SQLite and PostgreSQL
  implement it);
* :mod:`~firesteel.cluster.election`: who is the one job manager that acts (a port; a file lock, PostgreSQL and
  ZooKeeper implement it); :mod:`~firesteel.cluster.leadership`: its terms, where there are several;
* :mod:`~firesteel.cluster.processes`, :mod:`~firesteel.cluster.launching`, :mod:`~firesteel.cluster.driver`,
  :mod:`~firesteel.cluster.planners`: processes; :mod:`~firesteel.cluster.driver_lease`: what lets a driver commit;
* :mod:`~firesteel.cluster.supervisor`: the life of jobs;
* :mod:`~firesteel.cluster.rest`: the REST API; :mod:`~firesteel.cluster.client` is its other end.

Importing this package loads nothing.
"""

__all__: list[str] = []
