package servers

import (
	"math"

	"penstock/consumers/decider/servers/switching"
)

// Codes of reasons beside those of package switching: what was done with a site, and what
// was not.
const (
	FirstTable       = "FirstTable"       // a site without a table
	WeightsChanged   = "WeightsChanged"   // the places or speeds of its zones have changed
	ServersChanged   = "ServersChanged"   // other servers by the configuration
	Renewed          = "Renewed"          // the table in force, before its time is over
	RolledBack       = "RolledBack"       // the operator's word
	Expired          = "Expired"          // nothing was known for too long: the configured servers are on
	ServerFailed     = "ServerFailed"     // a server that the switch could not turn on, or off
	SwitchRefused    = "SwitchRefused"    // the server switch could not apply a table at all
	Turned           = "Turned"           // requests that no server got
	Unseen           = "Unseen"           // sites of which there is no row yet
	NoEarlierTable   = "NoEarlierTable"   // a rollback to a time from which no table is known
	Refused          = "Refused"          // everyone who answered has refused this very table
	UnknownSite      = "UnknownSite"      // rows of a site that is not configured
	UnknownServer    = "UnknownServer"    // rows of a server that its site does not have
	BadRow           = "BadRow"           // rows that cannot be used
	Frozen           = "Frozen"           // the operator's word
	Observing        = "Observing"        // mode observe
	IncompleteWindow = "IncompleteWindow" // events of the window are missing
	PromisesBroken   = "PromisesBroken"   // executors don't apply what is decided
)

// codes is the order of reasons in a record.
var codes = []string{
	IncompleteWindow, Observing, Frozen, BadRow, UnknownSite, UnknownServer, Unseen, Turned, ServerFailed, SwitchRefused,
	string(switching.Panic), FirstTable, ServersChanged, string(switching.BelowLeast), string(switching.Replaced), string(switching.AboveMost),
	string(switching.PenaltyAboveCost), string(switching.PotentialCritical), string(switching.PeakAhead), string(switching.IdleServer),
	WeightsChanged, Expired, Renewed, RolledBack,
	string(switching.InsufficientSamples), string(switching.NoServerLeft), string(switching.Cooldown), string(switching.AwaitingStart), string(switching.CatchingUp),
	string(switching.HoldTime), string(switching.BusyAhead), string(switching.WithinCost), string(switching.Fixed),
	NoEarlierTable, Refused, PromisesBroken,
}

var texts = map[string]string{
	FirstTable: "the site has no table yet", WeightsChanged: "places or speeds of its zones are others", ServersChanged: "the configuration has other servers",
	Renewed: "the table in force, before its time is over", RolledBack: "by the operator's word",
	Expired:                             "nothing is known of the load any more: the configured servers are on",
	string(switching.PenaltyAboveCost):  "a second's penalties are more than a server costs",
	string(switching.PotentialCritical): "what waits would be late by more than is allowed",
	string(switching.PeakAhead):         "the load that is expected does not fit what runs",
	string(switching.BelowLeast):        "fewer servers run than are to",
	string(switching.AboveMost):         "more servers run than may",
	string(switching.Replaced):          "in place of servers that failed",
	string(switching.IdleServer):        "the others are enough",
	string(switching.Panic):             "every server has failed: all are tried again and again",
	string(switching.NoServerLeft):      "another server is called for, and there is none",
	string(switching.Cooldown):          "a change is called for, too soon after the last",
	string(switching.AwaitingStart):     "another server is called for, and one is starting",
	string(switching.CatchingUp):        "another server is called for, and the queue will be gone before it pays",
	string(switching.BusyAhead):         "a server is idle, and will be needed before long",
}

// counted are the reasons for doing nothing that are of no interest by site.
var counted = map[switching.Code]string{
	switching.InsufficientSamples: "sites of which too little is known to decide by; they stay as they are",
	switching.WithinCost:          "sites whose penalties call for no server, and whose load for each of them",
	switching.HoldTime:            "sites with a server that has not been idle for long enough",
	switching.Fixed:               "sites whose servers are left as they are: policy none",
}

// mostScoped is how many reasons of a code stand by themselves; the rest is counted
// together.
const mostScoped = 40

// rounded is v to a millionth: what is shown, so that the last bits of a sum tell nothing.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
