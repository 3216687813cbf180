/** What is kept over a shared store: connections, contexts, sites, sessions, messages, claims, keys, calls and topics. */
import { weaken } from './mutant.mjs'

const WRITERS = 'test/redis/hostile-writers.test.ts'
const SHARES = 'test/redis/shares.test.ts'
const LATE_CALLS = 'test/redis/rpc-late.test.ts'
const ENDINGS = 'test/redis/endings.test.ts'
const LATE_STREAMS = 'test/redis/subscriptions-late.test.ts'

const VERSIONS = 'test/redis/versions.test.ts'

export const REDIS_TABLES = [
  ...weaken('src/redis/store/prelude.ts', VERSIONS, [
    ['a row that is written is a change', '  raise(t)\n  write(t, id, state, body)', '  write(t, id, state, body)'],
    [
      'a row that is dropped is a change',
      "  redis.call('DEL', K(t, 'row', id))\n  raise(t)",
      "  redis.call('DEL', K(t, 'row', id))",
    ],
    [
      'a version of a lost store comes to no number again',
      "redis.call('SET', K(t, 'version'), time[1] .. '.' .. time[2])",
      "redis.call('INCR', K(t, 'version'))",
    ],
  ]),
  ...weaken('src/redis/sites/scripts.ts', VERSIONS, [
    ['a site is a change', "  raise('sites')\n  enlist()", '  enlist()'],
  ]),
  ...weaken('src/redis/sessions/scripts.ts', VERSIONS, [
    [
      'a move of a session is a change',
      "  raise(t)\n  redis.call('HSET', session_key(id), 'state', to,",
      "  redis.call('HSET', session_key(id), 'state', to,",
    ],
    ['a share is a change', "  raise(t)\n  redis.call('HSET', shares, user", "  redis.call('HSET', shares, user"],
  ]),
  ...weaken('src/redis/event-bus/scripts.ts', VERSIONS, [['an event is a change of its site', "  raise('bus')\n", '']]),
  ...weaken('src/redis/connections/format.ts', 'test/redis/connections.test.ts', [
    [
      'who fell silent is looked for where all are',
      "field !== 'ended_reason' || value !== LifecycleReason.enum.heartbeat_lost",
      'true',
    ],
  ]),
  ...weaken('src/redis/connections/scripts.ts', 'test/redis/connections.test.ts', [
    [
      'in a store, an end is indexed by its reason',
      "    redis.call('ZADD', K(t, 'ended_reason', reason), state.seq, id)",
      '',
    ],
    [
      'in a store, a connection is indexed by its node',
      "if type(state.node_id) == 'string' then state.ix[2] = { 'node_id', state.node_id } end",
      '',
    ],
    [
      'in a store, the index of an end goes with its connection',
      "    state.ix[#state.ix + 1] = { 'ended_reason', reason }",
      '',
    ],
    [
      'in a store, a newer instance takes over',
      "    finish(known, was, was_body, 'superseded', '${REASON.new_instance}', now)",
      '',
    ],
    [
      'in a store, connections are bounded by user and in all',
      'if not replaces and not has_room(',
      'if false and not has_room(',
      SHARES,
    ],
    [
      'in a store, a silent connection has no heartbeat',
      'if not state or state.ended_at or state.seen_at + state.lost_after_ms <= now then return nil end',
      'if not state then return nil end',
    ],
    [
      'in a store, connections that ended are bounded',
      `if redis.call('ZCARD', K(t, 'ended')) > tonumber(max_ended) then forget(surplus(t, 'ended')) end`,
      '',
      ['test/redis/connections.test.ts', 'test/redis/shares.test.ts'],
    ],
    [
      'a write sweeps no more than it can pay for',
      'if left <= 0 then return end\n    local state, body = load(t, id)\n    if state then lose_one',
      'local state, body = load(t, id)\n    if state then lose_one',
      'test/redis/shares.test.ts',
    ],
    [
      'in a store, who was replaced takes nothing along when it is forgotten',
      `if redis.call('GET', current) == id then redis.call('DEL', current) end`,
      `redis.call('DEL', current)`,
    ],
    ['a heartbeat never sets a sign of life back', 'now = math.max(now, state.seen_at)', ''],
    [
      'a connect that arrives late overwrites no newer one',
      'return once(id, function()',
      'return (function(_, work) return work() end)(id, function()',
      'test/redis/writes-again.test.ts',
    ],
  ]),
  ...weaken(
    'src/redis/presence/scripts.ts',
    ['test/redis/contexts.test.ts'],
    [
      [
        'in a store, an id belongs to who reported it first',
        `if was.user_id ~= state.user_id or was.client_id ~= state.client_id then return refuse('identity_conflict') end`,
        '',
      ],
      ['in a store, entries are bounded by user and in all', `if not has_room(`, 'if false and not has_room(', SHARES],
      [
        'a report that arrives late changes nothing',
        'if by == own_by and tonumber(own_at) <= tonumber(at) then return shown(was, was_body) end',
        '',
        'test/redis/writes-again.test.ts',
      ],
      ['in a store, a report does not change whose an entry is', 'state.ownership = was.ownership\n', '\n'],
      [
        'in a store, a report does not take a task away',
        'state.task_id, state.task_assigned_at, state.created_at = was.task_id, was.task_assigned_at, was.created_at',
        'state.created_at = was.created_at',
      ],
      ['a task that is taken stays', 'if state.task_id ~= cjson.null then return false end', ''],
      ['only a worker takes a task', `or state.ownership ~= 'worker' then return false end`, 'then return false end'],
      [
        'an id is claimed in the shard of the id',
        `if held and (claim.user_id ~= user or claim.client_id ~= client) then return refuse('identity_conflict') end`,
        '',
      ],
      [
        'a claim of a report that was refused is given back',
        `if good and claim.attempt == attempt then redis.call('DEL', key) end`,
        '',
        'test/redis/shares.test.ts',
      ],
      ['a claim ends with its entry', '  claim.until_ms = tonumber(until_ms)\n', ''],
      [
        'a claim that another report has made its own does not end',
        'if good and claim.attempt == attempt then\n  claim.until_ms',
        'if good then\n  claim.until_ms',
        'test/redis/writes-again.test.ts',
      ],
    ],
  ),
  ...weaken('src/redis/sites/scripts.ts', 'test/redis/sites.test.ts', [
    [
      'in a store, a site of another owner is not replaced',
      `if old and old.owner ~= owner then return refuse('owner_mismatch') end`,
      '',
    ],
    [
      'in a store, a site of another owner is not deleted',
      `if not old or (owner ~= '' and old.owner ~= owner) then return 0 end`,
      'if not old then return 0 end',
    ],
    [
      'in a store, an owner has so many sites',
      `if tonumber(redis.call('HGET', held, owner) or 0) >= tonumber(max_per_owner)\n      or `,
      'if ',
    ],
    ['in a store, sites are bounded', `\n      or redis.call('HLEN', owners) >= tonumber(max_sites) then`, ' then'],
    [
      'a site whose time is no time is none',
      `return type(since) == 'number' and since >= 0 and since <= now and head or nil`,
      'return head',
      WRITERS,
    ],
  ]),
  ...weaken('src/redis/subscriptions/format.ts', 'test/redis/subscriptions.test.ts', [
    ['in a store, a stream of a node that is silent is gone', '(until_ms <= now ? undefined : row)', 'row'],
  ]),
  ...weaken('src/redis/subscriptions/inspector.ts', 'test/redis/subscriptions.test.ts', [
    [
      'viewers that are not all reported are not counted',
      'const isShort = truncated || answers.includes(true)',
      'const isShort = false',
    ],
    [
      'viewers that cannot be read are not counted',
      'before === null || isBad || isCut ? null',
      'before === null ? null',
    ],
  ]),
  ...weaken('src/redis/subscriptions/facility.ts', 'test/redis/subscriptions.test.ts', [
    ['a node reports so many streams', '[...open].slice(0, maxReported)', '[...open]'],
    [
      'a node that leaves takes its streams along',
      'for (const { stream, isReported } of open) if (isReported) ended.add(stream)',
      '',
    ],
    [
      'a stream that has ended is not told of afterwards',
      'batch.filter((held) => open.has(held))',
      'batch',
      LATE_STREAMS,
    ],
    [
      'a registry of streams that is closed leaves none behind',
      '    open.clear()\n    if (ended',
      '    if (false && ended',
      ENDINGS,
    ],
    ['a registry of streams that is closed shows none', 'if (isClosed) return () => {}', '', ENDINGS],
    [
      'a shard that is lost does not keep a node from telling of the streams of others',
      'throwGravest(await Promise.allSettled(lists.map(tellAll)))',
      'for (const [shard, list] of lists.entries()) await tellAll(list, shard)',
      LATE_STREAMS,
    ],
  ]),
  ...weaken('src/redis/composition/facilities.ts', ENDINGS, [
    ['facilities that are closed tell of no viewer streams', '        subscriptions.close(),\n', ''],
  ]),
  ...weaken('src/redis/sessions/watchers.ts', 'test/redis/sessions.test.ts', [
    ['a watcher is told of what came before it could hear', '    heard.add(sessionId)\n    notify(sessionId)\n', ''],
    [
      'a watcher that begins anew is not told for that',
      'if (heard.has(sessionId) || !watchers.has(sessionId)) return',
      'if (!watchers.has(sessionId)) return',
    ],
    ['a watcher that throws is no business of others', 'guardHook(changed, store.onError)', '() => changed()'],
  ]),
  ...weaken('src/redis/sessions/scripts.ts', 'test/redis/sessions.test.ts', [
    [
      'in a store, a session moves as it may',
      `if not string.find(from, ',' .. state .. ',', 1, true) then return refuse('invalid_transition') end`,
      '',
    ],
    ['in a store, a session whose id was used before does not end with that', "unhold(t, 'final', before, id)", ''],
    [
      'in a store, a session is shared with nobody because one of its id was',
      "end\n  redis.call('DEL', session_key(id), shares_key(id), ends_key(id))\n  raise(t)",
      "end\n  redis.call('DEL', session_key(id))\n  raise(t)",
    ],
    [
      'in a store, a session that is forgotten is listed no more',
      "unhold(t, 'final', owner, id)\n  unlist(id, owner)",
      "unhold(t, 'final', owner, id)",
    ],
    [
      'in a store, a session that has ended is no session of its site',
      "if owner then redis.call('ZREM', K(t, 'at', owner, site_of(id)), id) end",
      '',
    ],
    ['in a store, a share that was taken back is none', "redis.call('ZREM', ends_key(id), user)", ''],
    ['in a store, an owner has so many sessions', `if not has_room(`, 'if false and not has_room('],
    [
      'in a store, shares of a session are bounded',
      `if redis.call('HLEN', shares) >= \${SHARES_MAX} then return refuse('capacity_exceeded') end\n  end`,
      'end',
    ],
    [
      'in a store, sessions that ended are bounded',
      `if redis.call('ZCARD', K(t, 'final')) <= most then return end`,
      'if true then return end',
    ],
    [
      'in a store, a session that is over has expired',
      `if state ~= 'closed' and held[2] and tonumber(held[2]) <= now then state, ended = 'expired', tonumber(held[2]) end`,
      '',
    ],
    [
      'nothing is shared of a session that is forgotten',
      `if not state_of(id) then return refuse('session_not_found') end\n  if redis`,
      'if redis',
    ],
  ]),
  ...weaken(
    'src/redis/store/shares.ts',
    ['test/redis/connections.test.ts', 'test/redis/sessions.test.ts'],
    [
      [
        'a pool has a share for each user',
        `return redis.call('ZCOUNT', own, from, '+inf') < tonumber(own_most)\n    and `,
        'return ',
      ],
      ['a pool is bounded in all', `\n    and redis.call('ZCOUNT', all, from, '+inf') < tonumber(most)`, '', SHARES],
      ['what must go of a pool is of whoever has most', `if id then return id, user end`, ''],
    ],
  ),
  ...weaken('src/redis/store/fair-share.ts', 'test/redis/fair-share.test.ts', [
    [
      'in a store, a user holds so many entries',
      `if over(redis.call('ZSCORE', K(s, 'entries'), user), bounds.entries_per_user)\n    or `,
      'if ',
    ],
    [
      'in a store, a user holds so many bytes',
      `\n    or over(redis.call('ZSCORE', K(s, 'bytes'), user), bounds.bytes_per_user) then`,
      ' then',
    ],
    [
      'in a store, what must go for their number goes from whoever has most',
      `return oldest(heaviest('entries'))`,
      'return oldest(user)',
    ],
    [
      'in a store, what must go for its bytes goes from whoever holds most',
      `return oldest(heaviest('bytes'))`,
      'return oldest(user)',
    ],
    ['in a store, what came just now stays', 'if holder == user and id == added then id = first[2] end\n', '\n'],
    [
      'in a store, what another user has by the name of what came just now may go',
      'if holder == user and id == added then',
      'if id == added then',
      ['test/redis/fair-share.test.ts', 'test/redis/deduplicator.test.ts'],
    ],
  ]),
  ...weaken('src/redis/history/inspector.ts', 'test/redis/history.test.ts', [
    ['the newest of a stream are so in all shards', '(lastOf(b) >= lastOf(a) ? b : a)', '(b.length > 0 ? b : a)'],
  ]),
  ...weaken('src/redis/history/scripts.ts', 'test/redis/history.test.ts', [
    ['in a store, the message of another user is another one', 'state and state.user_id ~= user and', 'false and'],
    ['in a store, a message is retained once', 'if known then\n', 'if false then\n'],
    ['in a store, a stream is bounded', 'if state.message_count > tonumber(max_per_stream) then', 'if false then'],
    ['in a store, messages are bounded', `make_room('history', message.user_id, id, bounds, evict)`, ''],
    [
      'in a store, payloads aside are bounded',
      `make_room('spilled', message.user_id, id, { bytes = max_spilled_bytes, bytes_per_user = max_spilled_bytes_per_user }, evict)`,
      '',
    ],
    [
      'in a store, numbers of a stream go on after it was emptied',
      'state.last_sequence = recall(stream)',
      'state.last_sequence = 0',
    ],
    ['in a store, emptied streams are bounded', `make_room('emptied', '', '', { entries = max_messages }, recall)`, ''],
    [
      'a message whose payload may be gone is refused',
      `if ref ~= '' and redis.call('ZREM', K('spilled', 'loose'), ref) == 0 then return`,
      `if ref ~= '' then redis.call('ZREM', K('spilled', 'loose'), ref) end if false then return`,
      'test/redis/spill-late.test.ts',
    ],
    [
      'a payload of a message that was retained before is loose',
      `if ref ~= '' and not is_again then loosen(ref, now) end`,
      '',
      'test/redis/history-late.test.ts',
    ],
    [
      'an append that arrives twice is one attempt',
      'local is_again = earlier and earlier.attempt == attempt',
      'local is_again = false',
      'test/redis/history-late.test.ts',
    ],
  ]),
  ...weaken('src/redis/history/retain.ts', 'test/redis/spill-late.test.ts', [
    ['a payload that comes after it was given up is deleted again', 'spilling.discard(ref)', ''],
  ]),
  ...weaken('src/redis/store/watch-link.ts', 'test/redis/silent-link.test.ts', [
    ['a link that answers nothing is given up', '++looks > LOOKS', 'false'],
    ['nothing is begun beside an attempt of the client', 'await end', ''],
    ['an error of one command is no sign of life', 'if (link.isReady) return', ''],
    [
      'a client that is closed does not wait for our question',
      'if (!link.isOpen && !link.isReady)',
      'if (!link.isOpen)',
    ],
    ['a client that its host has ended stays so', 'if (isEnded()) return', 'isEnded()'],
    ['a first attempt is its owner’s', '!link.isOpen || !wasReady', '!link.isOpen'],
  ]),
  ...weaken('src/redis/deduplicator/facility.ts', 'test/redis/deduplicator.test.ts', [
    [
      'a node knows its own limits before the first claim',
      'createDeduplicatorInspector(store, { ttlMs, capacity })',
      'createDeduplicatorInspector(store)',
    ],
  ]),
  ...weaken('src/redis/connections/inspector.ts', 'test/redis/connections.test.ts', [
    ['a history says how much of it was looked at', ', examined: items.length', ''],
  ]),
  ...weaken('src/redis/deduplicator/scripts.ts', 'test/redis/deduplicator.test.ts', [
    ['in a store, a claim that has run out is not given back', ' or tonumber(since) <= now - ttl then', ' then'],
    ['in a store, a claim runs out', 'if since and tonumber(since) > due then', 'if since then'],
    [
      'in a store, claims are bounded',
      'make_room(d, user, message, { entries = capacity }, function(old, holder)',
      '(function() end)(d, user, message, { entries = capacity }, function(old, holder)',
    ],
    ['in a store, a claim given back is not counted', `count(user, 'accepted', -1)`, ''],
    [
      'a claim that arrives twice is one',
      'return once(attempt, function() return claim(user, message, tonumber(ttl), tonumber(capacity)) end)',
      'return claim(user, message, tonumber(ttl), tonumber(capacity))',
    ],
  ]),
  ...weaken('src/redis/idempotency/scripts.ts', 'test/redis/idempotency.test.ts', [
    [
      'in a store, an answer is counted once',
      "kept_bytes() + redis.call('ZADD', kept, text(now), kept_as(#answer, session, name)) * #answer",
      "kept_bytes() + (redis.call('ZADD', kept, text(now), kept_as(#answer, session, name)) and #answer)",
    ],
    [
      'in a store, an answer stays when a former one of its key goes',
      "if not isOld and redis.call('HSTRLEN', shed, 'answer') == tonumber(size) then",
      'if not isOld then',
    ],
    [
      'in a store, an answer is not counted whose key has gone',
      "if redis.call('ZREM', kept, kept_as(size, session, oldest[i])) == 1 then",
      'if false then',
    ],
    [
      'in a store, another call under the same key is told',
      `if held[2] ~= fingerprint then return { 'reused' } end`,
      '',
    ],
    [
      'in a store, a call under way keeps its key',
      `if (tonumber(held[4]) or 0) > now then return { 'running' } end`,
      '',
    ],
    [
      'in a store, a claim that arrives twice is one',
      `if held[1] == attempt then return { 'claimed', held[3] } end`,
      '',
    ],
    ['in a store, a viewer has so many keys', `if not gone then return refuse('capacity_exceeded') end`, ''],
    [
      'in a store, only the attempt that claimed says what it came to',
      `if held[1] ~= attempt or held[5] then return 0 end\nredis.call('HSET'`,
      `redis.call('HSET'`,
    ],
    [
      'in a store, a key that has ended is not freed',
      `if held[1] ~= attempt or held[5] then return 0 end\nredis.call('DEL', key)`,
      `redis.call('DEL', key)`,
    ],
    [
      'in a store, answers are bounded in bytes',
      'if not isOld and total <= tonumber(max_bytes) then break end',
      'if not isOld then break end',
    ],
  ]),
  ...weaken('src/redis/connections/script-churn.ts', 'test/redis/connections.test.ts', [
    [
      'a minute that nobody watched is not told of',
      "if redis.call('EXISTS', key) == 0 then key = churn_key(now) end",
      '',
    ],
    [
      'in a store, kinds of ends are bounded',
      "if not redis.pcall('ZSCORE', key, field) and redis.call('ZCARD', key) >",
      'if false and 0 >',
    ],
  ]),
  ...weaken('src/redis/connections/scripts.ts', 'test/redis/connections.test.ts', [
    [
      'a client that comes back is known to have been taken over',
      'superseded = tonumber(was.superseded) or 0',
      'superseded = 0',
    ],
  ]),
  ...weaken('src/redis/table/merged.ts', 'test/redis/rpc.test.ts', [
    [
      'a page goes on where several shards have the same score',
      "from: `${shard > at.shard ? '' : '('}${at.sequence}`",
      'from: `(${at.sequence}`',
    ],
    [
      'nothing is shown before what another shard has that is older',
      'while (heads.every(({ isEnd, ahead }) => isEnd || ahead.length > 0)) {',
      'while (heads.some(({ isEnd, ahead }) => isEnd || ahead.length > 0)) {',
    ],
  ]),
  ...weaken('src/redis/rpc/scripts.ts', 'test/redis/rpc.test.ts', [
    [
      'in a store, a reply of another client is foreign',
      `if call.user_id ~= user or call.client_id ~= client then return true end`,
      '',
    ],
    [
      'in a store, a reply of another instance is foreign',
      `return call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance`,
      'return false',
    ],
    [
      'in a store, a call past its time has no reply',
      `if not call or call.deadline_at <= now then`,
      `if not call then`,
      LATE_CALLS,
    ],
    [
      'a reply that is dropped counts once, however often it arrives',
      "if redis.call('SET', K(t, 'dropped', name), 1, 'NX', 'PX', ${NAMED_MS}) then tally(why) end",
      'tally(why)',
      'test/redis/losses/messages.test.ts',
    ],
    [
      'a call whose node has died is counted as timed out',
      `for i = 1, #due do end_call(due[i], 'timed_out') end`,
      'for i = 1, #due do drop(t, due[i]) end',
    ],
    [
      'calls of all shards are in one order',
      "if (tonumber(redis.call('GET', K(t, 'seq')) or 0) or 0) < first then",
      'if false then',
    ],
    [
      'in a store, an id of a pending call is taken',
      `if was and was.attempt ~= state.attempt then return refuse('command_conflict') end`,
      '',
      LATE_CALLS,
    ],
    [
      'in a store, pending calls are bounded',
      `if redis.call('ZCARD', K(t, 'all')) >= tonumber(max_pending) then`,
      'if false then',
      LATE_CALLS,
    ],
    [
      'in a store, a user has so many calls pending',
      `if redis.call('ZCARD', K(t, 'user_id', state.user_id)) >= tonumber(max_per_user) then`,
      'if false then',
      ['test/redis/actions-replies.test.ts', 'test/redis/rpc.test.ts'],
    ],
    [
      'an opening that arrives after its end opens nothing',
      ` or redis.call('EXISTS', K(t, 'over', state.attempt)) == 1 then return now end`,
      ' then return now end',
      LATE_CALLS,
    ],
    [
      'a reply that arrives twice is one',
      `if redis.call('GET', K(t, 'by', id)) == name then return 'settled' end`,
      '',
      LATE_CALLS,
    ],
    [
      'only its own attempt takes a call away',
      'if call and call.attempt == attempt then end_call(id, how) end',
      'if call then end_call(id, how) end',
      LATE_CALLS,
    ],
    [
      'a reply to a former call does not answer this one',
      `redis.call('DEL', K(t, 'reply', id), K(t, 'reply-to', id), K(t, 'by', id))`,
      '',
      LATE_CALLS,
    ],
    ['a reply answers the opening that it is to', `if to and to ~= attempt then return nil end`, '', LATE_CALLS],
  ]),
  ...weaken('src/redis/rpc/facility.ts', 'test/redis/rpc.test.ts', [
    [
      'one id is opened once, though asked for twice at once',
      `      // Another opening of this id may have come meanwhile. From here to \`add\` nothing is waited for.\n      check()\n`,
      '',
    ],
    [
      'an opening that fails late takes no other call away',
      'if (pending.get(correlation_id)?.attempt === attempt) pending.end(correlation_id)',
      'pending.end(correlation_id)',
      LATE_CALLS,
    ],
  ]),
  ...weaken('src/redis/rpc/format.ts', 'test/redis/rpc.test.ts', [
    [
      'an Error of a reply arrives as one',
      `if (is_error === true && error !== null && typeof error === 'object')`,
      'if (false)',
    ],
    [
      'an Error of a reply arrives as one, and nothing else does',
      `if (is_error === true && error !== null && typeof error === 'object')`,
      `if (error !== null && typeof error === 'object')`,
    ],
    [
      'what stands for an Error and is no object is itself',
      `is_error === true && error !== null && typeof error === 'object'`,
      'is_error === true',
    ],
    [
      'a field of an Error changes nothing but itself',
      'Object.defineProperty(error, field, { value, enumerable, configurable: true, writable: true })',
      'Object.assign(error, { enumerable })[field as never] = value as never',
    ],
  ]),
  ...weaken('src/redis/rpc/replies.ts', LATE_CALLS, [
    [
      'replies are looked for in each shard by itself',
      'await Promise.allSettled([...byShard].map(([shard, ids]) => lookIn(shard, ids)))',
      'for (const [shard, ids] of byShard) try { await lookIn(shard, ids) } catch { return }',
    ],
  ]),
  ...weaken('src/redis/rpc/pending.ts', LATE_CALLS, [
    [
      'a late look at a reply is about the call that it was for',
      'if (text !== null && pending.get(id) === waiting) deliver',
      'if (text !== null) deliver',
    ],
  ]),
  ...weaken('src/redis/event-bus/scripts.ts', 'test/redis/event-bus.test.ts', [
    [
      'a publication that arrives twice is one',
      `if redis.call('ZSCORE', sent, name) then`,
      'if false then',
      'test/redis/actions-replies.test.ts',
    ],
    [
      'in a store, an event is published once',
      `if redis.call('ZSCORE', had, event_id) then return`,
      'if false then return',
      ['test/redis/cooperative.test.ts', 'test/redis/actions-replies.test.ts', 'test/redis/event-bus.test.ts'],
    ],
    [
      'a store that went back starts a new epoch',
      'if not e or (e == epoch and s < tonumber(seq)) then',
      'if not e then',
    ],
    [
      'a position that is none starts a new epoch',
      `if string.find(e, '%c') or not counts then e, spoilt = false, 1 end`,
      '',
    ],
    ['topics of a user are counted for as long as they are kept', "  redis.call('PEXPIRE', of, ${KEPT_MS})\n", ''],
    ['a topic that is gone counts no longer', "    redis.call('ZREMRANGEBYSCORE', of, '-inf', now - ${KEPT_MS})\n", ''],
    ['in a store, a user has so many topics', `if redis.call('ZCARD', of) > `, `if redis.call('ZCARD', of) > 1000 * `],
  ]),
  ...weaken('src/redis/event-bus/local-topic.ts', 'test/redis/event-bus.test.ts', [
    [
      'what arrived while the process stood still is not lost',
      'late = setTimeout(giveUp)',
      'giveUp()',
      'test/redis/local-topic.test.ts',
    ],
    [
      'a message that is no event is a hole',
      'return read.success ? (deepFreeze(read.data) as SiteEvent) : undefined',
      'return { ...JSON.parse(text), seq } as SiteEvent',
      [WRITERS, 'test/redis/event-bus.test.ts'],
    ],
    [
      'a message that is none is passed over',
      `if (head === undefined || epoch === undefined || !Number.isSafeInteger(seq)) return undefined`,
      '',
      [WRITERS, 'test/redis/event-bus.test.ts'],
    ],
    [
      'an event that never came is a gap',
      'else if (behind && isAhead(behind) && now - behind.at >= CATCH_UP_MS) topic',
      'else if (behind && (false as boolean)) topic',
    ],
    [
      'two looks at once take nothing for lost',
      ' && now - behind.at >= CATCH_UP_MS',
      '',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what is missing is lost a second later, however often it is looked at',
      'if (isAhead(position)) behind ??= {',
      'if (isAhead(position)) behind = {',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what was missing of a former epoch is no loss in this one',
      'const isAhead = ({ epoch, seq }: StorePosition) => epoch === topic.position.epoch && seq >',
      'const isAhead = ({ seq }: StorePosition) => seq >',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what is on its way when the link is back is no loss',
      '      await local.reach(position)\n',
      '',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what has not come a second after the link is back is lost',
      'if (position.epoch !== epoch || position.seq > topic.position.seq) topic',
      'if (false as boolean) topic',
      'test/redis/local-topic.test.ts',
    ],
    [
      'an epoch that is heard of while the link comes back stays',
      'if (epoch !== topic.position.epoch) return\n      if (pos',
      'if (pos',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what is heard before a topic is placed is bounded',
      'earlyMessages.length > queueSize ? earlyMessages.shift() : undefined',
      'false ? earlyMessages.shift() : undefined',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what is heard too early and left out is a gap',
      'leftOut?.epoch === epoch ? [leftOut, ...messages] : messages',
      'messages',
      'test/redis/local-topic.test.ts',
    ],
  ]),
  ...weaken('src/redis/event-bus/topics.ts', 'test/redis/event-bus-topics.test.ts', [
    [
      'a shard that fails holds up no other topics',
      'await look(batch, positionsOf, tell).catch(onError)',
      'await look(batch, positionsOf, tell)',
    ],
    [
      'an epoch that is heard of while the store is asked stays',
      'if (local.topic.position.epoch === epochs[i]) tell',
      'if (epochs) tell',
    ],
    ['messages that are late together are asked about once', '    if (checking.has(local)) return\n', ''],
    ['a topic that somebody waits for is kept', ' || local.preparing > 0', ''],
  ]),
]
