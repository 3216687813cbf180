/**
 * How the nodes of a deployment learn what concerns them, for the scripts of the dispatcher. Nothing here is a message
 * that may be lost for good: what a node is notices stands in the store until it is no longer so, or until the node has
 * said that it heard.
 *
 * The protocol, in a shard. Any reply may be lost; any write may come twice, or late (then the prelude refuses it).
 * - Admit: the command lies in its mailbox (`box`). If somebody waits there, the mailbox is put on the list `todo` of
 *   the node at which he waits, and that node is sent a wake-up. A repeated admission answers the record, and does the same.
 * - Attach: the node first asks for an order (later askers get greater ones), then takes the mailbox with it. An order
 *   that is not greater than the one that waits there, or than the one that left last (`left`), is late and changes
 *   nothing. The former waiter's node is given news of it.
 * - Claim: the waiter, by its token, takes the first command of its mailbox and numbers its claims. The same number
 *   again is the same claim and gets the same answer; a smaller one is late. Whoever finds the mailbox empty takes it off
 *   the list. An attempt has a patience: its lease.
 * - Conclude: what `deliver` came to, by the number of the attempt. Once is enough.
 * - Acknowledge, settle, cancel: fenced by instance, one end per command. A repeat changes nothing, and gives the node
 *   of the last attempt its news once more.
 * - Reconcile, every node and shard, at least once a second: what is past its deadline ends, attempts whose patience is
 *   over go back to their mailbox after a pause, what is over is forgotten. The node says which waiters and commands it
 *   holds, some in each pass, and the store says of each what is not so; the store names the waiters that it has not
 *   heard of for longest, and the node detaches those that it does not have.
 * - Notify: `todo` names a mailbox again in every pass until it is empty. `news` are numbered, and removed when the node says
 *   up to which number it has heard.
 * - Crash: a node that does not renew its lease (`incarnations`) gets no news; after a minute its waiters are removed. One that
 *   comes back finds its lease lapsed and says of all its waiters that they wait.
 */

/** News wait this long for their node: longer than a lease, after which it looks for itself. */
const NEWS_MS = 60_000
/**
 * A mailbox stays on the list this long before its node has notice of it again: shorter than the pause between two passes,
 * so that the next one has it.
 */
const RENOTIFY_MS = 500

export const DELIVERY_NOTICES = `
local notices, by_news = {}, false
-- Mailboxes that were called in this run; by the places of those at this node, what it is to be told of them.
local called, calls = {}, {}

local function todo_of(to) return 'todo:' .. encode(to) end
local function wake(to) redis.call('SPUBLISH', K(D, 'wake-ups', to), 'call') end

-- The shard's one counter, on which commands are numbered too. It grows also in a store that has lost what it stood at.
local function order()
  local at = time[1] * 1000000 + time[2]
  local last = tonumber(zcall('GET', 'seq')) or 0
  if at <= last then at = last + 1 end
  local text = string.format('%.0f', at)
  zcall('SET', 'seq', text)
  return text
end

-- Whoever asked reads it in the reply. A pass takes its own from the store instead, where it stays until it is heard.
local function notify(to, notice)
  if not to or to == '' then return end
  if to == incarnation and not by_news then
    notices[#notices + 1] = notice
    return
  end
  local lease = zcall('ZSCORE', 'incarnations', to)
  if not lease or tonumber(lease) <= now then return end
  local news = K(D, 'news', to)
  redis.call('ZADD', news, order(), notice)
  redis.call('PEXPIRE', news, ${NEWS_MS})
  if to ~= incarnation then wake(to) end
end

-- The mailbox of a command that is ready is called. Once a run is enough.
local function call(user, client, mailbox)
  if called[mailbox] then return end
  local to = redis.call('HGET', ended(D, 'waiter', mailbox), 'incarnation')
  called[mailbox] = true
  if not to then return end
  local place = user .. '\\n' .. client
  local isHere = to == incarnation and not by_news
  list(todo_of(to), text(stored_now + (isHere and ${RENOTIFY_MS} or 0)), place)
  if isHere then calls[place] = 'call\\n' .. place elseif to ~= incarnation then wake(to) end
end

-- Who has claimed there in this run has heard what there is. What comes behind is called again.
local function withdraw_call(user, client, mailbox) called[mailbox], calls[user .. '\\n' .. client] = nil, nil end
`

/** News, and mailboxes, of one look: about a millisecond. */
const BATCH = 100

/** For the scripts that ask what their node is to be told. */
export const DELIVERY_NEWS = `
-- What this node has not heard yet, after the number up to which it has. Answers the new number, and whether there is more.
local function take(after)
  local news, todo = K(D, 'news', incarnation), K(D, 'todo', incarnation)
  written(todo_of(incarnation))
  redis.call('ZREMRANGEBYSCORE', news, '-inf', after)
  local got = redis.call('ZRANGE', news, 0, ${BATCH - 1}, 'WITHSCORES')
  for i = 1, #got, 2 do
    notices[#notices + 1] = got[i]
    after = string.format('%.0f', got[i + 1])
  end
  local places = redis.call('ZRANGE', todo, '-inf', stored_now, 'BYSCORE', 'LIMIT', 0, ${BATCH})
  for i = 1, #places do
    notices[#notices + 1] = 'call\\n' .. places[i]
    redis.call('ZADD', todo, stored_now + ${RENOTIFY_MS}, places[i])
  end
  return after, (#got == ${2 * BATCH} or #places == ${BATCH}) and 1 or 0
end
`
