package config

func (l *loader) warn() {}
