module github.com/headgate/headgate/service

go 1.26.0

replace github.com/headgate/headgate => ..

require github.com/headgate/headgate v0.0.0
