// Package simulation lets a fleet of instances, each with a lease around a denycache, share
// one store for an hour of traffic in which instances die and are cut off, and holds all that was
// granted against the limits. It does the same for processes in three regions that are cut off
// from their home. Time is that of a testing/synctest bubble, so an hour takes about a minute, and
// the package runs from its tests only:
//
//	make simulate
//
// writes docs/simulation.md, docs/simulation.svg and docs/regions.md.
package simulation
