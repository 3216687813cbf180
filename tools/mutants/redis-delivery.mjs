/** The dispatcher over a shared store: its scripts, its waiters and what its observer shows. */
import { weaken } from './mutant.mjs'

const CONTRACT = 'test/redis/delivery.test.ts'
const PRESENCE = 'test/redis/delivery-presence.test.ts'
const REPLIES = 'test/redis/delivery-replies.test.ts'
const BOUNDS = 'test/redis/delivery-bounds.test.ts'
const LISTS = 'test/redis/delivery-lists.test.ts'
const LATE = 'test/redis/delivery-late.test.ts'
const NODES = 'test/redis/delivery-nodes.test.ts'
const BATCHES = 'test/redis/delivery-batches.test.ts'
const FAULTS = 'test/redis/delivery-faults.test.ts'
const FULL = 'test/redis/full-store.test.ts'
const FORMER = 'test/redis/delivery-former.test.ts'
const CLAIMS = 'test/redis/delivery-claims.test.ts'
const HAND_OVERS = 'test/redis/delivery-hand-overs.test.ts'

export const REDIS_DELIVERY = [
  ...weaken('src/redis/delivery/hand-overs.ts', HAND_OVERS, [
    ['a hand-over of a former attempt is told', 'untold.get(ref)?.tell()\n', ''],
    ['a hand-over is told after a moment', 'alarm.advance(waitMs)', ''],
    ['a hand-over waits for a part of the patience', 'Math.min(WAIT_MS, ackTimeoutMs / PATIENCE_PART)', 'WAIT_MS'],
    ['a hand-over is taken along once', 'untold.delete(ref)\n      return', 'return'],
  ]),
  ...weaken('src/redis/delivery/outcomes.ts', HAND_OVERS, [
    [
      'a hand-over is told where the word it travelled with does not count',
      'answer ? undefined : handOver.tell()',
      'undefined',
    ],
    ['a hand-over is told where the word it travelled with was lost', ', handOver.tell)', ')'],
    ['a node says at its end what it has handed over', 'return handOvers.tellAll()', 'return Promise.resolve()'],
    [
      'a node that is closed tells of hand-overs at once',
      "if (closed || outcome === 'rejected'",
      "if (outcome === 'rejected'",
    ],
    ['a hand-over late in its patience is told at once', '|| !isPrompt ', ''],
  ]),
  ...weaken('src/redis/delivery/scripts.ts', HAND_OVERS, [
    ['a hand-over before the end is recorded behind it', "if isOpen and outcome == 'handed_over' and", 'if false and'],
    ['a hand-over after the end is late', 'now - tonumber(ago) <', '0 <'],
  ]),
  ...weaken('src/redis/delivery/loop.ts', HAND_OVERS, [
    ['a pass tells of hand-overs before it looks for those given up', 'await outcomes.tellHandOvers(shard)\n', ''],
  ]),
  ...weaken('src/redis/delivery/script-ends.ts', HAND_OVERS, [
    [
      'an acknowledgement tells of the hand-over',
      'local isNews = note_hand_over(c, handed_over)\nif c.phase',
      'local isNews = false\nif c.phase',
    ],
    ['an acknowledgement made again tells of the hand-over', 'if isNews then save(c) end', ''],
    [
      'an end tells of the hand-over',
      'local isNews = note_hand_over(c, handed_over)\nlocal isTaken',
      'local isNews = false\nlocal isTaken',
    ],
    [
      'a hand-over of another attempt is no news',
      'local isNews = c.attempts == handed_over and',
      `local isNews = handed_over ~= '' and`,
    ],
    ['a hand-over is news once', `== handed_over and c.last_outcome == ''`, '== handed_over'],
  ]),
  ...weaken('src/redis/delivery/script-claims.ts', HAND_OVERS, [
    ['who has claimed in a run is not called by it', 'withdraw_call(c.user_id, c.client_id, c.mailbox)\n', ''],
  ]),
  ...weaken('src/redis/delivery/script-notices.ts', HAND_OVERS, [
    [
      'what comes behind a claim is called again',
      String.raw`called[mailbox], calls[user .. '\\n' .. client] = nil, nil`,
      String.raw`calls[user .. '\\n' .. client] = nil`,
    ],
  ]),
  ...weaken('src/redis/delivery/scripts.ts', LATE, [
    [
      'a dispatch that is refused leaves the place to another one of its command',
      `if redis.call('EXISTS', sharers) == 1 then return 1 end`,
      '',
    ],
    ['a command that is over gives its place back, whoever shared it', `if attempt == '' then`, 'if false then'],
  ]),
  ...weaken('src/redis/delivery/scripts.ts', FAULTS, [
    [
      'a command that was lost from its mailbox returns when it is dispatched again',
      `if not redis.call('ZSCORE', waiting, id) then`,
      'if false then',
    ],
  ]),
  ...weaken('src/redis/delivery/dispatch.ts', FAULTS, [
    ['a command that was not admitted gives its place back', 'if (wasNotRun(error)) await giveBack()', ''],
  ]),
  ...weaken('src/redis/delivery/script-moves.ts', FAULTS, [
    [
      'a foreign mailbox holds no command back from its end',
      `redis.pcall('ZREM', box(c), c.command_id)`,
      `redis.call('ZREM', box(c), c.command_id)`,
    ],
  ]),
  ...weaken('src/redis/delivery/script-lists.ts', FULL, [
    [
      'what a full store refuses stays on its lists',
      `  raise(D)
  local was`,
      '  local was',
    ],
  ]),
  ...weaken('src/redis/store/prelude.ts', FULL, [
    [
      'in a full store each call of a run is refused, not only the first',
      `  redis.call('SET', K(t, 'version'), time[1] .. '.' .. time[2])
`,
      `  raised[t] = true
  redis.call('SET', K(t, 'version'), time[1] .. '.' .. time[2])
`,
    ],
  ]),
  ...weaken('src/redis/delivery/summary.ts', 'test/redis/beyond-bounds-kept.test.ts', [
    [
      'where many commands have expired, those that are due are counted and not what is left of all',
      'if expired > records and tracked <= records and later <= records then',
      'if false then',
    ],
  ]),
  ...weaken('src/redis/delivery/scripts.ts', CONTRACT, [
    [
      'in a store, an id of a command stands for one payload',
      `return { same and 'known' or 'conflict', text_of(known) }`,
      `return { 'known', text_of(known) }`,
    ],
    [
      'in a store, a command that needs a waiter needs one',
      `if needs ~= '' and not waited_for(mailbox, needs == 'current' and current) then`,
      'if false then',
    ],
    [
      'in a store, a command that needs a waiter needs a current one',
      `or (instance and waiter[2] ~= instance) then return false end`,
      'then return false end',
      LATE,
    ],
    [
      'a waiter at a dead node is none',
      'return waiter[1] == incarnation or (lease and tonumber(lease) > now)',
      'return true',
      [PRESENCE, CONTRACT],
    ],
    [
      'commands of one run have numbers of their own',
      'return text(before + number)',
      'return text(before + 1)',
      BATCHES,
    ],
    ['in a store, commands are bounded', `elseif tracked_now() >= tracked_max then`, 'elseif false then', BOUNDS],
    ['in a store, a user has so many commands', `elseif held_by(user) >= held_max then`, 'elseif false then', BOUNDS],
    [
      'in a store, a scope has so many commands',
      `elseif scope_shard == '' and not reserve(scope, ref, deadline, tonumber(capacity), news ~= '') then`,
      'elseif false then',
      [BOUNDS, CONTRACT],
    ],
    [
      'a command admitted again is told of again',
      `    call(user, client, mailbox)
  end
  return { same`,
      `  end
  return { same`,
      LATE,
    ],
    [
      'an outcome of a former attempt is late, in a store',
      "if not c or c.terminal ~= '' or c.attempts ~= attempt or c.last_outcome ~= '' then",
      "if not c or c.terminal ~= '' or c.last_outcome ~= '' then",
      LATE,
    ],
    [
      'an attempt has one outcome',
      "if not c or c.terminal ~= '' or c.attempts ~= attempt or c.last_outcome ~= '' then",
      "if not c or c.terminal ~= '' or c.attempts ~= attempt then",
      [CONTRACT, REPLIES],
    ],
    [
      'an outcome after the end changes nothing',
      "if not c or c.terminal ~= '' or c.attempts ~= attempt or c.last_outcome ~= '' then",
      "if not c or c.attempts ~= attempt or c.last_outcome ~= '' then",
      LATE,
    ],
    ['a command admitted again leaves its former lists', 'unlist(user, ref, key)\n  redis.call', 'redis.call', LISTS],
    [
      'a reservation left behind in another shard is over in time',
      `zcall('ZADD', 'scope-until', 'GT', deadline, scope)`,
      '',
      LATE,
    ],
  ]),
  ...weaken('src/redis/delivery/run.ts', CLAIMS, [
    [
      'a claim waits for no other shard',
      'for (const [n, answer] of reply.claims) calls[n - 1]?.claimed?.(answer)\n',
      '',
    ],
  ]),
  ...weaken('src/redis/delivery/script-claims.ts', CLAIMS, [
    ['a call that leaves the mailbox as it was brings nothing', ' or not freed', ''],
  ]),
  ...weaken('src/redis/delivery/script-moves.ts', LATE, [
    ['a record is that of its own key', "    and c.ref == user .. '\\\\n' .. client .. '\\\\n' .. id\n", ''],
    ['junk in the place of a number holds up no list', 'and is_whole(c.seq)', ''],
    ['a foreign value in one place keeps nothing from the others', 'pcall(forget_oldest, kind)', 'forget_oldest(kind)'],
  ]),
  ...weaken('src/redis/delivery/script-lists.ts', LATE, [
    ['a long list is written whole', 'for i = 1, #words, ${SLICE} do', 'for i = 1, 1 do'],
  ]),
  ...weaken('src/redis/delivery/script-claims.ts', LATE, [
    [
      'only the waiter claims',
      `if waiter[1] ~= token then return waiter[1] and 'replaced' or 'missing' end`,
      `if not waiter[1] then return 'missing' end`,
    ],
    ['what is to be done must be known', `if found[2] and c.action ~= '' then`, 'if found[2] then'],
    ['a payload of another type is none', `if found[2] and c.action ~= '' then`, `if c.action ~= '' then`, FAULTS],
    [
      'what nobody knows any more is not handed over again',
      `if not payload_text or c.action == '' then`,
      'if not payload_text then',
    ],
    ['a claim of a former number is late', `if wanted < last then return 'more' end`, ''],
    ['a claim whose answer was lost is the same claim', 'if wanted == last then', 'if false then', REPLIES],
    ['an expired command in front of a mailbox is passed over', `if c and c.phase == 'ready' then`, 'if c then'],
    ['a claimed command is listed as attempted', 'relist(c, from)\n        note_claim(', 'note_claim(', CONTRACT],
    ['a command of an earlier build is claimed', 'else c = look(user, client, id, mailbox, path) end', 'end', FORMER],
    [
      'a claim that fails leaves the call that it travelled with its answer',
      'local good, answer = pcall(claim_next, ',
      'local good, answer = true, claim_next(',
      CLAIMS,
    ],
  ]),
  ...weaken('src/redis/delivery/script-ends.ts', CONTRACT, [
    ['an acknowledged command is listed as such', `relist(c, from)\n  count('ack`, `count('ack`],
    [
      'in a store, a late acknowledgement changes nothing',
      `local refusal = (not c or c.terminal ~= '') and 'late' or`,
      `local refusal = not c and 'late' or`,
    ],
    [
      'in a store, a stale instance does not acknowledge',
      `or fenced(c, instance, was_asked, current) and 'fenced'`,
      '',
    ],
    [
      'in a store, a command acknowledged twice is acknowledged once',
      `if c.phase == 'acknowledged' then\n  if isNews`,
      'if false then\n  if isNews',
    ],
    [
      'in a store, a command ends once',
      `if c.terminal ~= '' then\n  freed = true\n  renotify(c)\n  return was_ended_by(c, attempt) and 1 or 0\nend\nif instance`,
      'if instance',
    ],
    [
      'without a registry the attached instance speaks for its client',
      String.raw`return (attached or string.match(c.attempted, '^[^\\n]*\\n([^\\n]*)')) ~= instance`,
      'return false',
    ],
    [
      'in a store, an acknowledgement that travels with the end is recorded',
      String.raw`c.acknowledged = 'acknowledged\\n' .. now_text .. '\\n' .. instance`,
      '',
    ],
    [
      'in a store, an end leaves an earlier acknowledgement as it is',
      `local isTaken = acknowledges ~= '' and c.phase ~= 'acknowledged'`,
      `local isTaken = acknowledges ~= ''`,
    ],
    [
      'in a store, a stale instance does not settle',
      `if instance ~= '' and fenced(c, instance, was_asked, current) then`,
      'if false then',
    ],
    [
      'a command that ended is told of again to who has not heard',
      `freed = true\n  renotify(c)\n  return was_ended_by`,
      `freed = true\n  return was_ended_by`,
      LATE,
    ],
    [
      'a call that ended a command is told so when it comes again',
      'renotify(c)\n  return was_ended_by(c, attempt) and 1 or 0',
      'renotify(c)\n  return 0',
      REPLIES,
    ],
    [
      'a refusal that ended a command is told so when it comes again',
      'if was_ended_by(c, attempt) then',
      'if false then',
      REPLIES,
    ],
  ]),
  ...weaken('src/redis/delivery/script-places.ts', CONTRACT, [
    [
      'a reservation past its deadline holds no place',
      `redis.call('ZREMRANGEBYSCORE', key, '-inf', now_text)\n    held`,
      'held',
      BOUNDS,
    ],
    [
      'in a store, a user’s place comes back once',
      `if zcall('ZREM', 'deadlines', ref) == 1 and zcall('HINCRBY'`,
      `if zcall('ZREM', 'deadlines', ref) and zcall('HINCRBY'`,
      LATE,
    ],
    [
      'a capacity that the host changed is shown',
      'if isNew and (held == 1 or isNews) then',
      'if isNew and held == 1 then',
    ],
    ['a scope without reservations leaves no capacity', `zcall('HDEL', 'capacities', scope)`, '', BOUNDS],
  ]),
  ...weaken('src/redis/delivery/script-moves.ts', CONTRACT, [
    [
      'a record without its scope stops no pass',
      `else good = good and c.scope_id ~= '' end`,
      'end',
      'test/redis/hostile-writers.test.ts',
    ],
    ['junk in what only some moves read stops no pass', 'return tonumber(value) or 0', 'return tonumber(value)', LATE],
    [
      'in a store, a command past its deadline has ended',
      `if tonumber(c.deadline_at) <= now then finish(c, 'expired', 'deadline_passed', c.deadline_at) end`,
      '',
    ],
    ['in a store, records that ended are bounded', 'forget(kind, ref) end end', 'end end', [BOUNDS, CONTRACT]],
    [
      'in a store, a command that ended gives its place back',
      `if c.scope_shard == '' then release(c.scope_id, c.ref) end`,
      '',
    ],
    ['a command that ended is listed as such', 'relist(c, from)\n  if c.scope', 'if c.scope'],
    ['a record that is forgotten leaves its lists', 'unlist(user, ref, key)\n', '', BOUNDS],
    ['in a store, payloads go with the end', 'doomed[#doomed + 1] = payload(c)', '', [BOUNDS, CONTRACT]],
    [
      'a number that is none ends no pass',
      'if not good then return nil, true end',
      '',
      'test/redis/hostile-writers.test.ts',
    ],
    ['a record that is over is none', 'if tonumber(c.until_ms) <= now then return nil, true end', '', LATE],
  ]),
  ...weaken('src/redis/delivery/script-recovery.ts', CONTRACT, [
    [
      'in a store, attempts are bounded',
      `if attempts >= count_of(c.max_attempts) then return finish(c, 'failed', 'attempts_exhausted') end`,
      '',
    ],
    [
      'a claim that never reached its node counts against no bound',
      '  c.max_attempts = text(count_of(c.max_attempts) + 1)\n',
      '',
      LATE,
    ],
  ]),
  ...weaken('src/redis/delivery/script-nodes.ts', PRESENCE, [
    [
      'the clearing up removes no waiter that moved',
      `if redis.call('HGET', key, 'incarnation') == dead then redis.call('DEL', key) end`,
      `redis.call('DEL', key)`,
    ],
    [
      'a renewing waiter takes over from no newer one',
      `if was[1] then isLate = own < (tonumber(was[4]) or 0) end`,
      'if was[1] then isLate = false end',
      [PRESENCE, REPLIES, 'test/redis/delivery-order.test.ts'],
    ],
    [
      'an attach after its own detach is late',
      `local isLate = own <= (tonumber(redis.call('GET', K(D, 'left', user, client))) or 0)`,
      'local isLate = false',
      REPLIES,
    ],
    [
      'a former waiter’s node is told',
      `notify(was[2], 'replaced\\n' .. place .. '\\n' .. was[1])`.replaceAll('\\n', '\\\\n'),
      '',
      NODES,
    ],
    ['only the waiter that waits detaches', 'if waiter[1] ~= token then return 0 end', '', LATE],
    ['what a waiter claimed without learning of it goes back', `then requeue(c) end`, 'then end', REPLIES],
    [
      'a waiter that the store lost waits again',
      `else say((was[1] and 'replaced' or 'missing')`,
      `else local _ = ((was[1] and 'replaced' or 'missing')`,
      REPLIES,
    ],
    ['a waiter that only the store has is detached', `if token then say('held`, `if false then say('held`, REPLIES],
    [
      'a command that ended elsewhere is released',
      `if not c or c.phase == 'ended' then say(`,
      `if false then say(`,
      REPLIES,
    ],
    ['a dead node keeps nothing', 'if dead then reap(dead) end', ''],
    [
      'a node whose lease ran out learns it',
      'local lapsed = not lease or tonumber(lease) <= now',
      'local lapsed = false',
      NODES,
    ],
    [
      'records are forgotten in time',
      'for _, ref in ipairs(due(kind, left)) do',
      'for _, ref in ipairs({}) do',
      BOUNDS,
    ],
    [
      'a command whose record is gone leaves its lists',
      'if not c and user then unlist(',
      'if false then unlist(',
      LISTS,
    ],
    [
      'commands of a store without lists get onto them',
      `if c and c.terminal == '' then enlist(state_of(c), c.user_id, c.scope_id, c.seq, c.ref) end`,
      '',
      LISTS,
    ],
    [
      'nodes are bounded',
      `if redis.call('ZCARD', K(t, 'all')) > `,
      `if redis.call('ZCARD', K(t, 'all')) > 1000 * `,
      NODES,
    ],
  ]),
  ...weaken('src/redis/delivery/script-lists.ts', CONTRACT, [
    [
      'a list of a scope ends with its last record',
      `if scope ~= '' and scope ~= user then leave_list(of_id(scope), ref) end`,
      '',
      BOUNDS,
    ],
    ['a command is listed under its scope', 'if scope ~= user then list(of_id(scope), seq, ref) end', ''],
    [
      'what is listed again in one run is listed',
      `  if of.left then of.left[member] = nil end
`,
      '',
    ],
  ]),
  ...weaken(
    'src/redis/delivery/commands.ts',
    [CONTRACT, LISTS],
    [
      [
        'an entry whose command was admitted anew is none',
        'if tonumber(c.seq) ~= seq then return false end',
        '',
        LISTS,
      ],
      [
        'a command that is over is not listed',
        '<= now then return false end\n  if user',
        '< 0 then return false end\n  if user',
      ],
      ['a filter without a list of its own is held to', "or client ~= '' and client_id ~= client", ''],
      ['those that are overdue stand in the order of the others', 'table.sort(found,', 'local _ = (found and'],
      ['a list looks at so many entries', 'examined == most or', ''],
    ],
  ),
  ...weaken('src/redis/delivery/script-notices.ts', NODES, [
    ['numbers grow in a store that has lost its own', 'if at <= last then at = last + 1 end', ''],
    ['a dead node is left no word', 'if not lease or tonumber(lease) <= now then return end', ''],
    [
      'what was told is told again until it was heard',
      `redis.call('ZREMRANGEBYSCORE', news, '-inf', after)`,
      `redis.call('DEL', news)`,
    ],
    [
      'a mailbox that is not empty is named again',
      "redis.call('ZADD', todo, stored_now + ${RENOTIFY_MS}, places[i])",
      `redis.call('ZREM', todo, places[i])`,
    ],
    ['a mailbox is named again in the next pass', 'const RENOTIFY_MS = 500', 'const RENOTIFY_MS = 1_000'],
  ]),
  ...weaken('src/redis/delivery/facility.ts', CONTRACT, []),
  ...weaken('src/redis/delivery/attach.ts', CONTRACT, [
    [
      'in a store, a stale instance does not attach',
      'if (connections && current !== instance.instance_id) throw',
      'if (false) throw',
      PRESENCE,
    ],
    [
      'an order is taken before the registry is asked',
      `const order = await waiters.order(shard)
    const current = await connections?.currentInstance(instance)`,
      `const current = await connections?.currentInstance(instance)
    const order = await waiters.order(shard)`,
      'test/redis/delivery-order.test.ts',
    ],
    ['a node has so many waiters', 'waiters.size >= maxWaiters || ', '', BOUNDS],
    ['a user has so many waiters at a node', ' || waiters.of(instance.user_id) >= maxWaitersPerUser', '', BOUNDS],
    [
      'a node that is closed attaches nobody',
      `if (isClosed()) {
      await waiters.leave(waiter)
      throw new Refusal('closed')
    }`,
      '',
      'test/redis/delivery-order.test.ts',
    ],
  ]),
  ...weaken(
    'src/redis/delivery/waiters.ts',
    [REPLIES, PRESENCE],
    [
      [
        'an attach that may have come through is taken back',
        `!wasNotRun(error)) leaving.add(waiter)`,
        `!wasNotRun(error)) leaving.size`,
      ],
      [
        'a client that left is said to have left',
        'leaving.add(waiter)\n      onError(error)',
        'onError(error)',
        'test/redis/delivery-order.test.ts',
      ],
      [
        'a claim stays unanswered for whoever left with it so',
        `unsure: waiter.returned ?? ''`,
        `unsure: isUnanswered ? claim : ''`,
        REPLIES,
      ],
      [
        'a waiter that was replaced is dropped',
        `drop(waiter)
      return false
    },`,
        `return true
    },`,
        ['test/redis/delivery-order.test.ts', PRESENCE, 'test/redis/delivery-shared.test.ts'],
      ],
    ],
  ),
  ...weaken('src/redis/delivery/heartbeat.ts', 'test/redis/delivery-endings.test.ts', [
    ['a heartbeat that has not begun stands for all', 'if (waiting) return waiting', ''],
    [
      'a node that was closed in order is not looked for',
      'closed ? { ...record(), is_closed: true } : record()',
      'record()',
      PRESENCE,
    ],
  ]),
  ...weaken('src/redis/delivery/loop.ts', 'test/redis/delivery-endings.test.ts', [
    ['what a closed node leaves undone is no failure', 'if (!closed) store.onError(error)', 'store.onError(error)'],
    [
      'a lost shard holds up nothing of the others',
      '    const passes = all',
      '    throwGravest(all)\n    const passes = all',
    ],
  ]),
  ...weaken('src/redis/delivery/script-former.ts', FORMER, [
    ['a record of an earlier build is read', 'taken_over(key, reply) or reply', 'reply'],
  ]),
  ...weaken('src/redis/delivery/claims.ts', CLAIMS, [
    ['a claim whose call failed is made by itself', 'running.then(none, none)', 'running.then(none)'],
    ['a claim travels with what releases the mailbox', 'return carry(waiter)', 'return NO_CLAIM'],
    [
      'a claim travels for whom the registry names',
      'if (connections && current !== waiter.instance_id) return NO_CLAIM\n',
      '',
    ],
    ['a claim travels for an idle client', '|| waiter.isDraining ? NO_CLAIM : carry(waiter)', '? NO_CLAIM : NO_CLAIM'],
    ['a claim that travels is unanswered', 'waiter.isUnanswered = true\n    waiter.isCalled', 'waiter.isCalled'],
  ]),
  ...weaken('src/redis/delivery/mailboxes.ts', CLAIMS, [
    [
      'a command claimed for who was replaced is handed over',
      '(isWaiting(waiter) || waiter.carried) &&',
      'isWaiting(waiter) &&',
    ],
  ]),
  ...weaken('src/redis/delivery/outcomes.ts', 'test/redis/delivery-faults.test.ts', [
    ['an outcome that could not be said is said again', 'if (performance.now() < untilAt) unrecorded.add(record)', ''],
  ]),
  ...weaken('src/redis/delivery/mailboxes.ts', 'test/redis/delivery-endings.test.ts', [
    ['a waiter that has left is handed nothing', 'if (waiter.returned !== null) return false', ''],
  ]),
  ...weaken(
    'src/redis/delivery/mailboxes.ts',
    [CONTRACT, PRESENCE],
    [
      [
        'in a store, a waiter that was fenced is released',
        `delivery.count('other', 'waiter_fenced')
    await waiters.leave(waiter)
    return false`,
        'return true',
        'test/redis/delivery-order.test.ts',
      ],
      [
        'a step that failed is tried again',
        'if (isWaiting(waiter)) failed.add(waiter)\n      onError',
        'onError',
        [REPLIES, 'test/redis/delivery-faults.test.ts', PRESENCE],
      ],
    ],
  ),
  ...weaken('src/redis/delivery/format.ts', 'test/redis/defences.test.ts', [
    ['an observer shows no status of another command', 'if (record?.ref !== commandKey(key))', 'if (!record)'],
  ]),
  ...weaken('src/redis/delivery/script-places.ts', BATCHES, [
    ['commands of one run are counted, of all', 'tracked and tracked + 1', 'tracked'],
    [
      'commands of one run are counted, of a user',
      `held[user] = zcall('HINCRBY', 'held', user, '1')`,
      `zcall('HINCRBY', 'held', user, '1') held[user] = 1`,
    ],
  ]),
  ...weaken('src/redis/delivery/node-script.ts', BATCHES, [
    ['a call that fails fails alone', 'local good, answer = pcall(run, ', 'local good, answer = true, run('],
    ['no argument of a call says another', 'value.includes(SEPARATOR)', 'false'],
    ['a script is given what the keys of its command end in', 'String(values[id])', `'' + id`],
    ['a call whose list is none is told so', 'write_all()', 'fail = function() end\nwrite_all()'],
  ]),
  ...weaken('src/redis/delivery/run.ts', BATCHES, [
    ['calls of one turn run together', 'if (batch.calls.length === CALLS_MAX)', 'if (batch.calls.length === 1)'],
    ['so many calls run together', 'if (batch.calls.length === CALLS_MAX)', 'if (false)'],
    ['large calls run in smaller numbers', 'known && known.bytes + bytes <= BYTES_MAX', 'known'],
    ['the bound of a run is of bytes', ': utf8Length(text)', ': text.length'],
  ]),
  ...weaken('src/redis/delivery/inspector.ts', 'test/redis/defences.test.ts', [
    [
      'an observer shows no status that is forgotten',
      'found.untilMs !== null && found.untilMs <= now ? null : ',
      '',
      'test/redis/defences.test.ts',
    ],
    [
      'an observer shows a command past its deadline as expired',
      'expiredAt(found.status, now)',
      'found.status',
      [BOUNDS, 'test/redis/expired-entries.test.ts', 'test/redis/delivery-truth.test.ts'],
    ],
  ]),
]
