package redisstore

import "github.com/headgate/headgate/internal/redisscript"

// advices are what helps a store against errors that other scripts may not meet.
var advices = []redisscript.Advice{
	{Prefix: "NOPERM", Text: "the user needs the commands EVALSHA, EVAL, GET, MGET, SET, DEL and TIME on the keys of this prefix"},
	{Prefix: "WRONGTYPE", Text: "somebody else's value is at the key: choose another prefix"},
	{Prefix: "BADSTATE", Text: "choose another prefix, or delete the key"},
}

func wrap(err error) error { return redisscript.Explain("redisstore", err, advices) }
