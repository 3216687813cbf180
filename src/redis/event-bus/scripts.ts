/** The scripts of the event bus: a topic counts and publishes in one step, and says where it stands. */
import { count, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** How long a topic is remembered that nobody has published to and no node has asked about. */
const KEPT_MS = 600_000
/** How long a publication is known by its name: longer than any sender goes on trying. */
const SENT_MS = 30_000
/** As many of one topic at most. */
const SENT_MAX = 10_000
/** Topics of one user in a shard; beyond, the one untouched for longest starts a new epoch. */
const TOPICS_PER_USER = 10_000

// `bus:topic:<topic>`: a hash, epoch and seq; `bus:on:<topic>`: its channel; `bus:sent:<topic>`: names of publications
// by time, so that one that arrives twice is one; `bus:of:<user>`: the user's topics by when they were last touched;
// `bus:last:<user>`: a hash, topic to the newest event's time and position, for whoever looks. A node that has
// seen more than the store holds tells of a store that has lost something: the count starts again under a new name. So it does when what is held
// is not a position that we would have written, or the last that a number can carry; `spoilt` says so.
const TOPIC = `
local function standing(topic, epoch, seq, fresh)
  local key = K('bus', 'topic', topic)
  local held = redis.call('HMGET', key, 'epoch', 'seq')
  local e, s = held[1], held[2] or '0'
  local spoilt = 0
  if e then
    local counts = (s == '0' or string.find(s, '^[1-9]%d*$')) and tonumber(s) < ${Number.MAX_SAFE_INTEGER}
    if string.find(e, '%c') or not counts then e, spoilt = false, 1 end
  end
  s = tonumber(s)
  if not e or (e == epoch and s < tonumber(seq)) then
    e, s = fresh, 0
    redis.call('HSET', key, 'epoch', e, 'seq', s)
  end
  -- First: behind it a full store takes the rest, too.
  redis.call('PEXPIRE', key, ${KEPT_MS})
  local of = K('bus', 'of', string.match(topic, '^users/([^/]+)/') or '')
  if redis.call('ZADD', of, now, topic) == 1 then
    redis.call('ZREMRANGEBYSCORE', of, '-inf', now - ${KEPT_MS})
    if redis.call('ZCARD', of) > ${TOPICS_PER_USER} then
      redis.call('DEL', K('bus', 'topic', redis.call('ZPOPMIN', of)[1]))
    end
  end
  redis.call('PEXPIRE', of, ${KEPT_MS})
  return key, e, s, spoilt
end
`

/** What a publication answers where the topic has had the event. */
const REPEATED = 2

/** How long the newest event of a topic is told of, after the last one of its user. */
const LAST_KEPT_MS = 2_592_000_000
/** Topics of one user of which it is; beyond, all of theirs in the shard are forgotten together. */
const LAST_MAX = 10_000

/** Events of one topic that are remembered by their ids, for as long as the topic. */
const HAD = 1_000

/**
 * `known_epoch` and `known_seq` are the position that the publisher knows, `event_id` is what the topic may have had the
 * event under, or nothing, `published_at` what the event says of itself, and `name` that of this publication. Answers where
 * the event stands, or the topic by now where it had arrived before.
 */
export const PUBLISH = defineScript(
  'event-bus.publish',
  {
    args: ['topic', 'event', 'fresh', 'known_epoch', 'known_seq', 'event_id', 'published_at', 'name'],
    answer: (reply) => {
      if (reply === REPEATED) return { isRepeated: true, isSpoilt: false, position: undefined }
      const [spoilt, epoch, seq = null] = listOf(reply)
      return { isRepeated: false, isSpoilt: spoilt === 1, position: { epoch: String(epoch), seq: count(seq) } }
    },
  },
  `${TOPIC}
local sent = K('bus', 'sent', topic)
redis.call('ZREMRANGEBYSCORE', sent, '-inf', now - ${SENT_MS})
-- A client that sends again after a lost connection does not know that the first one has arrived.
if redis.call('ZSCORE', sent, name) then
  local _, epoch, seq = standing(topic, known_epoch, known_seq, fresh)
  return { 0, epoch, seq }
end
local had = K('bus', 'had', topic)
if event_id ~= '' then
  redis.call('ZREMRANGEBYSCORE', had, '-inf', now - ${KEPT_MS})
  if redis.call('ZSCORE', had, event_id) then return ${REPEATED} end
end
redis.call('ZADD', sent, now, name)
redis.call('ZREMRANGEBYRANK', sent, 0, -${SENT_MAX + 1})
redis.call('PEXPIRE', sent, ${SENT_MS})
local key, epoch, _, spoilt = standing(topic, known_epoch, known_seq, fresh)
local seq = redis.call('HINCRBY', key, 'seq', 1)
redis.call('SPUBLISH', K('bus', 'on', topic), epoch .. '\\n' .. seq .. '\\n' .. event)
-- For whoever looks at the sites; what stands in its way there keeps nobody from publishing.
local user = string.match(topic, '^users/([^/]+)/')
local last = K('bus', 'last', user or '')
local noted = user and redis.pcall('HLEN', last)
if type(noted) == 'number' then
  raise('bus')
  if noted >= ${LAST_MAX} and redis.call('HEXISTS', last, topic) == 0 then redis.call('DEL', last) end
  redis.call('HSET', last, topic, published_at .. ' ' .. epoch .. ':' .. string.format('%.0f', seq))
  redis.call('PEXPIRE', last, ${LAST_KEPT_MS})
end
if event_id ~= '' then
  redis.call('ZADD', had, now, event_id)
  redis.call('ZREMRANGEBYRANK', had, 0, -${HAD} - 1)
  redis.call('PEXPIRE', had, ${KEPT_MS})
end
return { spoilt, epoch, seq }`,
)

/** `known` are topic, epoch and seq as the node knows them, again and again. Answers where each topic stands. */
export const POSITIONS = defineScript(
  'event-bus.stand',
  {
    args: ['fresh'],
    rest: 'known',
    answer: (reply) => {
      const found = listOf(reply)
      return Array.from({ length: found.length / 3 }, (_, i) => ({
        epoch: String(found[3 * i]),
        seq: count(found[3 * i + 1] ?? 0),
        isSpoilt: found[3 * i + 2] === 1,
      }))
    },
  },
  `${TOPIC}
local found = {}
for i = 1, #known, 3 do
  local _, epoch, seq, spoilt = standing(known[i], known[i + 1], known[i + 2], fresh .. '-' .. i)
  found[#found + 1] = epoch
  found[#found + 1] = seq
  found[#found + 1] = spoilt
end
return found`,
)
