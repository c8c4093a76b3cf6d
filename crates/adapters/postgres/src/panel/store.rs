//! What the panel keeps, within a transaction.

use std::net::IpAddr;

use async_trait::async_trait;
use diesel::{
    ExpressionMethods, OptionalExtension, QueryDsl,
    dsl::{exists, select},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::{
    AccountMail, Action, Actor, Count, Limiter, Link, LinkKind, PanelStore, PasswordHash, SecretHash, Seller,
    Session, Subject,
};
use uuid::Uuid;

use super::{
    account_mails::Queued,
    audit::Note,
    flashes::{Keep, Take},
    links::{Add, Use},
};
use crate::{
    accounts::{CountDeed, Counted, SellerRow, count},
    pending::expect_rows,
    schema::{links, sellers, sessions},
    transaction::Tx,
};

#[async_trait]
impl PanelStore for Tx {
    async fn open_session(&self, session: Session) -> Result<(), StoreError> {
        let insert = diesel::insert_into(sessions::table).values((
            sessions::hash.eq(session.hash.bytes().to_vec()),
            sessions::seller_id.eq(session.seller.uuid()),
            sessions::created_at.eq(session.created_at),
            sessions::seen_at.eq(session.seen_at),
        ));
        let opened = self.run(insert.execute(&mut self.connection())).await?;
        expect_rows("sessions", opened, 1)
    }

    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError> {
        let end = diesel::delete(sessions::table.find(session.bytes().to_vec()));
        self.run(end.execute(&mut self.connection())).await?;
        Ok(())
    }

    async fn end_sessions(&self, seller: SellerId, but: Option<SecretHash>) -> Result<(), StoreError> {
        let spared = but.map_or_else(Vec::new, |but| but.bytes().to_vec());
        // Links first: whoever is using one is waited for here, so that the session that it opened is seen below.
        let useless = diesel::delete(links::table).filter(links::seller_id.eq(seller.uuid()));
        self.run(useless.execute(&mut self.connection())).await?;
        let end = diesel::delete(sessions::table)
            .filter(sessions::seller_id.eq(seller.uuid()))
            .filter(sessions::hash.ne(spared));
        self.run(end.execute(&mut self.connection())).await?;
        Ok(())
    }

    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError> {
        let has = select(exists(sessions::table.find(session.bytes().to_vec())));
        self.run(has.get_result(&mut self.connection())).await
    }

    async fn present_password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password = sellers::table.find(seller.uuid()).select(sellers::password_hash);
        let found: Option<Option<String>> = self
            .run(async { password.get_result(&mut self.connection()).await.optional() })
            .await?;
        Ok(found.flatten().map(PasswordHash::new))
    }

    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError> {
        let set = diesel::update(sellers::table.find(seller.uuid()))
            .set(sellers::password_hash.eq(Some(password.as_str())));
        let changed = self.run(set.execute(&mut self.connection())).await?;
        expect_rows("sellers", changed, 1)
    }

    async fn add_link(&self, link: Link) -> Result<(), StoreError> {
        let add = Add::new(&link);
        let added = self.run(add.execute(&mut self.connection())).await?;
        expect_rows("links", added, 1)
    }

    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        let used = Use {
            hash: hash.bytes(),
            kind: kind.as_str(),
        };
        let row = self
            .run(async {
                used.get_result::<SellerRow>(&mut self.connection())
                    .await
                    .optional()
            })
            .await?;
        row.map(Seller::try_from).transpose()
    }

    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError> {
        let url = self.tools().sealing.seal_link(mail.id.uuid(), &mail.url)?;
        self.write_later(Box::new(Queued { mail, url }));
        Ok(())
    }

    async fn keep_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let keep = Keep {
            session: session.bytes(),
            form,
            sealed,
        };
        Ok(self.run(keep.execute(&mut self.connection())).await? == 1)
    }

    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let take = Take {
            session: session.bytes(),
            form,
        };
        self.run(async {
            take.get_result::<Vec<u8>>(&mut self.connection())
                .await
                .optional()
        })
        .await
    }

    async fn count_deed(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        let deed = CountDeed::new(limiter, subject);
        count(
            self.run(deed.get_result::<Counted>(&mut self.connection()))
                .await?,
        )
    }

    async fn note(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        action: Action,
        subject: &str,
    ) -> Result<(), StoreError> {
        self.write_later(Box::new(Note {
            actor,
            address,
            action,
            subject: subject.to_owned(),
        }));
        Ok(())
    }
}
