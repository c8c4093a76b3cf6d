-- name: OPEN
-- $1, $2 and $3 the timeouts of a statement, of a row lock and of an idle transaction, in milliseconds. Compiling a plan would take
-- longer than any statement here: its cost, by which PostgreSQL decides, is overrated where a limit ends it early.
select
    api_now() as now,
    set_config('statement_timeout', $1, true) as statement_timeout,
    set_config('lock_timeout', $2, true) as lock_timeout,
    set_config('idle_in_transaction_session_timeout', $3, true) as idle_timeout,
    set_config('jit', 'off', true) as jit

-- name: PLAN_BY_VALUES
-- Has the transaction's later statements planned for their values: `$1 is null or id = $1` then is no condition at all, or one of an index.
-- Planned for any values it is a filter, and so is `id = coalesce(null, id)` in every plan.
select set_config('plan_cache_mode', 'force_custom_plan', true)
