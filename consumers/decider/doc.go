// Package decider is the loop that turns closed windows into decisions, for one
// kind (DESIGN §3.3). The policy of the kind is pure and stands behind [Policy];
// the loop reads windows, outcomes and the operator's switches, and writes each
// decided window as one atomic batch on COMMANDS: first its record on
// decisions.<kind>, under the sequence of the record before it, then its
// commands. A decision of more than 900 messages goes out in parts; each part
// begins with the record and says in Penstock-Part which of how many it is, and
// the window is decided when the last one is there.
//
// States: recovering → deciding → stopped or fenced.
//
//   - Recovering: the newest usable snapshot is restored (else the older one,
//     else the policy's first state), and each window that has a record is
//     decided again with the recorded inputs: the outcomes up to the recorded
//     sequence, the recorded switches, the configuration of the recorded digest.
//     The digest of the state must come out as recorded, else ErrDiverged. Nothing
//     that is recorded is sent again; missing parts of the last record are sent.
//     Then the configuration of today takes effect, after a snapshot.
//   - Deciding: a window closes; the loop takes in the outcomes and switches that
//     the bus held at that moment, asks the policy, and publishes. Outcomes and
//     switches enter the state only between windows.
//   - Fenced: another decider has written a record. Every decided window is
//     written to that one subject, so that whatever a decider that is not the
//     last writer wants to send is refused. It stops with ErrFenced and leaves no
//     snapshot; started again, it takes over what the other has written.
//
// What the record says in its body is equal whatever the partitions and cuts;
// where on the bus the inputs ended stands in its headers.
//
// The loop holds commands back, and says so by a reason of its own, when
// something of the window is missing (IncompleteWindow), the kind is frozen
// (Frozen), or the mode is observe (Observing). When the policy finds outcomes to
// contradict what it promised (Output.Broken), a kind in mode act goes on in mode
// advise from the next window on (PromisesBroken), until the operator writes its
// mode again; a thaw does not end that, nor does a restart: it is part of the
// state, and follows again when the window is decided again.
//
// Failures: errors of the bus are retried until the context ends. ErrFenced,
// ErrDiverged, ErrStateLost and messages that cannot be decoded end Run.
package decider
