select to_regclass('distributed_writes') is not null, to_regclass('pg_dist_node') is not null
