-- name: OPEN
-- $1, $2 and $3 the timeouts of a statement, of a row lock and of an idle transaction, in milliseconds.
select
    api_now() as now,
    set_config('statement_timeout', $1, true) as statement_timeout,
    set_config('lock_timeout', $2, true) as lock_timeout,
    set_config('idle_in_transaction_session_timeout', $3, true) as idle_timeout
