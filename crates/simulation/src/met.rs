//! What runs have met: a simulation in which nothing goes wrong any more would find nothing, and nobody would notice.

macro_rules! met {
    ($($(#[$about:meta])* $list:ident { $($(#[$doc:meta])* $what:ident,)* })*) => {
        /// Something that a run may meet. Each is counted when it happens, and draws no lot of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Met {
            $($($(#[$doc])* $what,)*)*
        }

        impl Met {
            $($(#[$about])* pub const $list: &'static [Self] = &[$(Self::$what),*];)*
        }
    };
}

met! {
    /// What runs of every world meet.
    ANYWHERE {
        /// A call was answered after a while.
        CallSlow,
        /// A call surely did nothing, and its caller was told so.
        CallRefused,
        /// A call never arrived, and its caller heard nothing.
        CallLost,
        /// A call was carried out, and its caller heard nothing.
        CallUnheard,
        /// A transaction was thrown out in favour of another one, by lot: none of these worlds locks in orders that end in a deadlock.
        ThrownOut,
        /// A transaction waited for a row that another one held.
        WaitedForRow,
        /// It gave that up.
        WaitedTooLong,
        /// A COMMIT surely did nothing, and its caller was told so.
        CommitRefused,
        /// A COMMIT never came to the server, and its caller heard nothing.
        CommitLost,
        /// A COMMIT was done, and its caller heard nothing.
        CommitUnheard,
        /// A process was asked to stop.
        ProcessStopped,
        /// A process died.
        ProcessDied,
        /// A request died with its process.
        DiedInRequest,
        /// A transaction was open when its process died.
        DiedInTransaction,
    }

    /// What runs of trade meet besides.
    TRADE {
        /// A request was sent twice at once.
        SentTwice,
        /// One was sent again though its answer had come.
        SentAfterAnswer,
        /// A client waited for an answer no longer.
        ClientImpatient,
        /// An answer was lost on its way to the client.
        AnswerLost,
        /// A request was answered that it is refused, …
        RequestRefused,
        /// … that it has failed, …
        RequestFailed,
        /// … that the one of its key still runs, …
        KeyInProgress,
        /// … or what was remembered under its key.
        AnswerRemembered,
        /// A key was claimed that somebody else had claimed, and not completed in time.
        ClaimTakenOver,
        /// That one came to complete it, and was refused.
        ClaimLost,
        /// After the answer to a COMMIT was lost, it turned out that all was done, …
        OutcomeDone,
        /// … or nothing.
        OutcomeUndone,
        /// An order was settled while it was shipped.
        SettledWhileShipped,
        /// A subscription was ended.
        Unsubscribed,
        /// A carrier did not know a parcel, …
        ParcelUnknown,
        /// … did not answer, …
        CarrierSilent,
        /// … saw it on its way, …
        ParcelUnderWay,
        /// … or delivered.
        ParcelDelivered,
        /// A receiver was sent something, …
        Attempted,
        /// … which it had taken before.
        ArrivedAgain,
        /// It took too long, …
        ReceiverTimedOut,
        /// … was not there, …
        ReceiverRefused,
        /// … or failed.
        ReceiverFailed,
        /// An attempt was put off.
        SendingPostponed,
        /// A delivery is to be attempted again.
        DeliveryRepeated,
        /// One was given up.
        DeliveryGivenUp,
        /// A lane was claimed that its worker had left behind.
        LaneTakenOver,
        /// That one came to record an end, or to give the lane back, and was refused.
        LaneLost,
        /// An end was recorded already.
        EndKnown,
    }

    /// What runs of tokens meet besides.
    TOKENS {
        /// A code or a refresh token was presented twice at once.
        PresentedTwice,
        /// A thief presented one that was used.
        Stolen,
        /// A client was told that its family has ended.
        FamilyEnded,
        /// After the answer to a COMMIT was lost, it turned out that the pair stands, …
        PairStands,
        /// … or does not.
        PairUndone,
        /// A client gave a token back.
        GivenBack,
        /// An application was suspended, …
        Suspended,
        /// … let in again, …
        Reinstated,
        /// … lost all of its tokens, …
        AllRevoked,
        /// … or was deleted.
        Deleted,
        /// A seller has ended a connection.
        Disconnected,
        /// The gate let a request in, …
        Admitted,
        /// … refused one beyond the limit, …
        BeyondLimit,
        /// … refused a token at its time, …
        TokenExpired,
        /// … or before it, …
        TokenEnded,
        /// … or said nothing.
        GateSilent,
    }
}
