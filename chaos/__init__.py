"""The fault suite: real jobs, killed at random moments and restarted, must give what a run without faults gives.

    make chaos

:mod:`chaos.job` is the job, :mod:`chaos.sql_job` another one in SQL, :mod:`chaos.scenario` runs and kills them,
:mod:`chaos.check` compares what came out.
"""
