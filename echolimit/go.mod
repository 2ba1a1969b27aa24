module github.com/headgate/headgate/echolimit

go 1.26.0

replace github.com/headgate/headgate => ..

require (
	github.com/headgate/headgate v0.0.0-00010101000000-000000000000
	github.com/labstack/echo/v5 v5.4.4
)

require (
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)
