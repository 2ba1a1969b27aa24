module github.com/headgate/headgate/service

go 1.26.0

replace github.com/headgate/headgate => ..

require github.com/headgate/headgate v0.0.0

require go.yaml.in/yaml/v3 v3.0.6

require google.golang.org/protobuf v1.36.12
