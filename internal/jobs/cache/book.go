package cache

import (
	"context"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/queue/admission"
)

// bookScript is admission.Booking.Book in Redis. KEYS[1] has the time until which the rate is spent. The arguments are
// the booking. All times are in microseconds. TestBookings compares the two.
const bookScript = `
local now, takes, burst, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local spent = tonumber(redis.call("GET", KEYS[1]) or "0")
local begin = math.max(now, spent - burst)
if begin - now <= most then
  spent = math.max(spent, now) + takes
  redis.call("SET", KEYS[1], string.format("%.0f", spent), "PX", string.format("%.0f", math.min(spent - now, 86400000000) / 1000 + 1000))
end
return string.format("%.0f", begin)`

// Book books work of a tenant in Redis, for all processes that share it, and returns when the work may begin: at once, or
// later if the tenant has spent its rate. Redis keeps for each tenant the time until which the rate is spent. ok is
// false if Redis cannot be reached.
func (c *Cache) Book(ctx context.Context, tenant string, b admission.Booking) (begin time.Time, ok bool) {
	name := Prefix + "spent:" + digest.HexOf([]byte(tenant))
	var text string
	isAnswered := c.callRedis(ctx, func(ctx context.Context) error {
		answer, err := c.redis.Do(ctx, "EVAL", bookScript, 1, name,
			b.Now.UnixMicro(), b.Duration.Microseconds(), b.Burst.Microseconds(), b.MaxWait.Microseconds())
		text, _ = answer.(string)
		return err
	})
	micros, err := strconv.ParseInt(text, 10, 64)
	if !isAnswered || err != nil {
		return time.Time{}, false
	}
	if micros == b.Now.UnixMicro() {
		return b.Now, true // at once: the time without rounding to microseconds
	}
	return time.UnixMicro(micros), true
}
