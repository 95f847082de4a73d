// Package line is the queue in front of one server (DESIGN §4.3, PAPERS §2.3 and
// §2.4): requests with deadlines and penalties, in the order that a [Discipline]
// gives them, and the questions that the paper's three algorithms ask of a queue
// before they choose a server.
package line
