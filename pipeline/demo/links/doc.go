// Package links shapes connections on one machine as if its ends were far apart.
//
// A [Link] listens at an address of its own and passes bytes on to another, both
// ways, each a fixed time later; what is under way does not wait for what was sent
// before it. A [Mesh] holds one for each ordered pair of places, with the round
// trip that sphere.RTT gives for their distance; a place and itself are next to
// each other and have none.
//
// Setting a connection up costs nothing, as with an access network that
// terminates TCP near the client: what is measured is requests and answers.
//
// A link is open from Open to Close, which cuts what runs through it. If the far
// end can't be reached, the near end's connection is closed, as it would be by a
// refusal.
package links
