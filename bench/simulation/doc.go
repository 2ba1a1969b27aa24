// Package simulation lets a fleet of instances, each with a lease around a denycache, share
// one store for an hour of traffic in which instances die and are cut off, and holds all that was
// granted against the limits. Time is that of a testing/synctest bubble, so an hour takes
// about a minute, and the package runs from its tests only:
//
//	make simulate
//
// writes docs/simulation.md and docs/simulation.svg.
package simulation
