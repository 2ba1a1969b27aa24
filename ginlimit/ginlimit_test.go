package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/ginlimit"
	"github.com/headgate/headgate/internal/doortest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	m.Run()
}

func start(t testing.TB, ms []doortest.Middleware) string {
	t.Helper()
	engine := gin.New()
	engine.Use(gin.CustomRecoveryWithWriter(nil,
		func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) }))
	for _, m := range ms {
		limit, err := ginlimit.New(m.Limiter,
			doortest.For(m.Options, ginlimit.Key, func(c *gin.Context, _ []headgate.Decision) {
				c.String(http.StatusTeapot, doortest.OwnBody)
			}))
		if err != nil {
			t.Fatal(err)
		}
		engine.Use(limit)
	}
	engine.NoRoute(func(c *gin.Context) {
		if status, byError := doortest.Status(c.Request.URL.Path); byError {
			c.Header("Handled", "yes")
			c.AbortWithStatus(status)
			return
		}
		c.Status(http.StatusOK) // NoRoute begins with 404
		doortest.Handle(c.Writer, c.Request)
	})
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return server.URL
}

func TestDoor(t *testing.T) { doortest.Run(t, start) }
