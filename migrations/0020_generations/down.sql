-- Locks each of four tables for a moment. What was revoked or signed out by a number alone lives again: revoke it before.
set local lock_timeout = '2s';

delete from schema_facts where version = '0020';
drop table follow_ups;
alter table sessions drop column generation;
alter table families drop column application_generation, drop column seller_generation;
alter table sellers drop column token_generation, drop column session_generation;
alter table applications drop column token_generation;
