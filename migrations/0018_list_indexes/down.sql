delete from schema_facts where version = '0018';
drop index applications_owner_idx;
drop index mails_given_up_idx;
drop index families_consented_idx;
