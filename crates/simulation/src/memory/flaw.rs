//! Flaws that a database, or an adapter over it, might have. A simulation that is worth anything notices each.

/// One flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// An answer is remembered whoever holds the claim by now.
    ForgetsFence,
    /// The answer is remembered before the effect, and apart from it.
    RemembersApart,
    /// What a transaction announces is told after its commit, by whoever has committed.
    TellsAfterCommit,
    /// A lane is put to sleep though somebody is about to queue something in it.
    SleepsTooSoon,
    /// The end of an attempt counts whichever attempt it was of.
    ForgetsAttempt,
    /// The end of an attempt counts whoever holds the lane by now.
    ForgetsLaneFence,
    /// Offers are read without being locked.
    ReadsUnlocked,
    /// The feed shows what is behind a transaction that is still under way.
    ReadsAhead,
    /// The gate goes by what it saw of a token before.
    RemembersTokens,
    /// A refresh token is read before its family is locked.
    JudgesUnlocked,
    /// A count whose answer was lost is sent again.
    CountsAgain,
}
