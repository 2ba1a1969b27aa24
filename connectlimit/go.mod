module github.com/headgate/headgate/connectlimit

go 1.26.0

replace github.com/headgate/headgate => ..

require (
	connectrpc.com/connect v1.21.1
	github.com/headgate/headgate v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc
	google.golang.org/protobuf v1.36.12
)

require github.com/sony/gobreaker/v2 v2.4.0 // indirect
