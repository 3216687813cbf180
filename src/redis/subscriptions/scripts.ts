/** The scripts of the viewer streams of a deployment: a node says which it holds, again and again. */
import { ignoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { UNREPORTED_UNTIL } from './inspector.js'

/** What one stream is in the list of `REPORT_STREAMS`: its ids, and how it stands as JSON. */
const STREAM_PARTS = 5

// The state of a row holds what names it and until when it counts, its body how it stands.
/** `streams` are id, viewer, session, site and body, again and again. `is_short`: `1` where the node has more than it reports. */
export const REPORT_STREAMS = defineScript(
  'subscriptions.report',
  { args: ['lease', 'is_short'], rest: 'streams', answer: ignoreReply },
  `
local t = 'subscriptions'
sweep(t)
local until_ms = now + lease
for i = 1, #streams, ${STREAM_PARTS} do
  local id, user, session, site, body = unpack(streams, i, i + ${STREAM_PARTS - 1})
  local was = load(t, id)
  if was and was.user_id == user and was.session_id == session and was.site_id == site then
    was.until_ms = until_ms
    save(t, id, was, body)
    leave(t, id, was, until_ms)
  else
    drop(t, id)
    put(t, id, nil, { subscription_id = id, user_id = user, session_id = session, site_id = site, until_ms = until_ms,
      ix = { { 'user_id', user }, { 'session_id', session }, { 'site_id', site } } }, body, until_ms)
  end
end
if is_short == '1' then
  raise(t)
  redis.call('SET', K(t, '${UNREPORTED_UNTIL}'), string.format('%.0f', until_ms), 'PX', lease)
end
return 1`,
)

/** Takes out streams that have ended, by their ids. */
export const END_STREAMS = defineScript(
  'subscriptions.end',
  { args: [], rest: 'gone', answer: ignoreReply, freesMemory: true },
  `
for _, id in ipairs(gone) do drop('subscriptions', id) end
return 1`,
)
