// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the source that is searched
/** Defects planted in rules and Lua scripts. Each must fail one of its test files. */

function weaken(file, tests, edits) {
  return edits.map(([name, find, replace]) => ({ name, file, find, replace, tests: [tests].flat() }))
}

export const MUTANTS = [
  ...weaken('src/redis/connections/connections.lua', 'test/redis/connections.test.ts', [
    [
      'in a store, a minute that no node observed is not reported',
      "if redis.call('EXISTS', key) == 0 then key = churn_key(now) end",
      '',
    ],
    [
      'in a store, kinds of ends are bounded',
      "if not redis.pcall('ZSCORE', key, field) and redis.call('ZCARD', key) >",
      'if false and 0 >',
    ],
  ]),
  ...weaken('src/redis/connections/connections.lua', 'test/redis/connections.test.ts', [
    [
      'in a store, an end is indexed by its reason',
      "    write('ZADD', K(t, 'ended_reason', reason), state.seq, id)",
      '',
    ],
    [
      'in a store, the index of an end is deleted with its connection',
      "    state.ix[#state.ix + 1] = { 'ended_reason', reason }",
      '',
    ],
  ]),
  ...weaken('src/redis/connections/connections.lua', 'test/redis/connections.test.ts', [
    [
      'in a store, a connection is indexed by its node',
      "if type(state.node_id) == 'string' then state.ix[2] = { 'node_id', state.node_id } end",
      '',
    ],
    [
      'in a store, a newer instance takes over',
      "    finish(known, was, was_body, 'superseded', {{NEW_INSTANCE}}, now)",
      '',
    ],
  ]),
  ...weaken('src/redis/deduplicator/deduplicator.lua', 'test/redis/deduplicator.test.ts', [
    ['in a store, an expired claim is not released', ' or tonumber(since) <= now - ttl then', ' then'],
    ['in a store, a released claim is not counted', "count(user, 'accepted', -1)", ''],
  ]),
  ...weaken('src/redis/deduplicator/claims.lua', 'test/redis/deduplicator.test.ts', [
    ['in a store, a claim expires', 'if since and tonumber(since) > due then', 'if since then'],
  ]),
  ...weaken('src/redis/delivery/admission.lua', 'test/redis/delivery.test.ts', [
    ['a command is listed under its scope', 'if scope ~= user then append(lists, scope, seq) end', ''],
    ['a capacity that the host changed is shown', "(writes_capacity ~= '' or new_scopes[scope])", 'new_scopes[scope]'],
    ['a dispatch with another payload is refused', "    return 'conflict'\n", "    return 'known\\0' .. text_of(c)\n"],
  ]),
  ...weaken('src/redis/delivery/admission.lua', 'test/redis/delivery-bounds.test.ts', [
    ['a reservation past its deadline does not count', '    expire_due({{COMMANDS_A_PASS}}, true)\n', ''],
  ]),
  ...weaken('src/redis/delivery/ending.lua', 'test/redis/delivery-lists.test.ts', [
    [
      'a list of a scope ends with its last record',
      "if scope and scope ~= user then call('LREM', K.of_of .. scope, '1', text(seq)) end",
      '',
    ],
    [
      'a record past its retention is not counted',
      "  add(expiring, until_ms .. ' ' .. state .. ' ' .. reason, by)\n",
      '',
    ],
    [
      'a command that expired long ago is deleted at once',
      'if tonumber(c.until_ms) <= now then write',
      'if false then write',
    ],
    ['readers skip chunks without open commands', 'if first_open ~= from then', 'if false then'],
  ]),
  ...weaken('src/redis/delivery/pass.lua', 'test/redis/delivery-lists.test.ts', [
    ['the earliest deadline is found behind ended commands', '  pcall(trim_due)\n', ''],
  ]),
  ...weaken('src/redis/delivery/turn.lua', 'test/redis/delivery-lists.test.ts', [
    ['latencies are those of the commands that ended last', '  part(write_ended)\n', ''],
  ]),
  ...weaken('src/redis/delivery/ending.lua', 'test/redis/delivery.test.ts', [
    ['an end counts by its reason', '  add(reasons, reason, by)\n', ''],
    ['the latency of an ended command is counted', "  count('took ' .. times_of(c))\n", ''],
  ]),
  ...weaken('src/redis/delivery/mailbox.lua', 'test/redis/delivery-faults.test.ts', [
    ['a command ends even if its mailbox was overwritten', "redis.pcall('LREM'", "redis.call('LREM'"],
  ]),
  ...weaken('src/redis/delivery/state.lua', 'test/redis/delivery.test.ts', [
    [
      'a record keeps totals of attempts whose lines were dropped',
      "text(attempts + 1) .. '\\t'",
      "text(attempts) .. '\\t'",
    ],
  ]),
  ...weaken('src/redis/delivery/reads.lua', 'test/redis/bad-rows.test.ts', [
    ['a record is read only under its own key', ' and ref_at(seq) == ref', ''],
  ]),
  ...weaken(
    'src/redis/delivery/clients.lua',
    ['test/redis/delivery-replies.test.ts', 'test/redis/delivery-steps.test.ts'],
    [
      ['an attach after its own detach is ignored', 'own_order <= detached or ', ''],
      ['a late attach takes the mailbox from no newer waiter', 'own_order < tonumber(was.order)', 'false'],
    ],
  ),
  ...weaken(
    'src/redis/delivery/clients.lua',
    ['test/redis/delivery.test.ts', 'test/redis/delivery-steps.test.ts'],
    [
      [
        'in a store, attempts are bounded',
        '  if tonumber(c.attempts) >= tonumber(c.max_attempts) then\n',
        '  if false then\n',
      ],
      [
        'the outcome of another attempt changes nothing',
        'or c.delivery ~= delivery then\n    if outcome',
        'then\n    if outcome',
      ],
      ['a delivery that was confirmed after the end is late', 'and now - ago < tonumber(c.ended_at) then', 'then'],
    ],
  ),
  ...weaken('src/redis/event-bus/topic.lua', 'test/redis/last-events.test.ts', [
    ['notes about sites do not prevent publishing', "redis.pcall('HLEN', last)", "redis.call('HLEN', last)"],
    ['the number of notes about sites is bounded', 'if noted >= LAST_MAX and', 'if false and'],
  ]),
  ...weaken('src/redis/history/history.lua', 'test/redis/history.test.ts', [
    [
      'in a store, a message id of another user is a different message',
      'state and state.user_id ~= user and',
      'false and',
    ],
  ]),
  ...weaken('src/redis/history/history.lua', 'test/redis/history.test.ts', [
    ['in a store, a message is retained once', 'if known then\n', 'if false then\n'],
    ['in a store, a stream is bounded', 'if state.message_count > tonumber(max_per_stream) then', 'if false then'],
    ['in a store, messages are bounded', "make_room('history', message.user_id, id, bounds, evict)", ''],
  ]),
  ...weaken('src/redis/idempotency/idempotency.lua', 'test/redis/idempotency.test.ts', [
    [
      'in a store, an answer whose key was deleted is not counted',
      "if redis.call('ZREM', kept, kept_as(size, session, oldest[i])) == 1 then",
      'if false then',
    ],
  ]),
  ...weaken(
    'src/internal/rules/idempotency.ts',
    ['test/cooperative-site/idempotency.test.ts', 'test/redis/idempotency.test.ts'],
    [
      ['another call with the same key is refused', 'held.fingerprint !== claim.fingerprint', 'false'],
      ['a call under way keeps its key', 'answer !== undefined || !(until > now)', 'true'],
      ['a claim that arrives twice counts once', 'held.attempt === claim.attempt', 'false'],
    ],
  ),
  ...weaken(
    'src/internal/rules/presence.ts',
    ['test/memory/contexts.test.ts', 'test/redis/contexts.test.ts'],
    [
      [
        'an id belongs to the client that reported it first',
        'if (known && (known.user_id !== user_id || known.client_id !== client_id))',
        'if (!known)',
      ],
      [
        'a report does not change the owner of a context',
        '{ ownership, task_id, task_assigned_at, created_at,',
        '{ task_id, task_assigned_at, created_at,',
      ],
    ],
  ),
  ...weaken('src/redis/table/records.lua', 'test/redis/shares.test.ts', [
    ['in a store, entries are bounded for each user and in total', 'if not has_room(', 'if false and not has_room('],
  ]),
  ...weaken('src/redis/table/records.lua', 'test/redis/writes-again.test.ts', [
    ['a write that arrives late changes nothing', 'if body ~= expected then return body end', ''],
  ]),
  ...weaken('src/redis/rpc/rpc.lua', 'test/redis/rpc.test.ts', [
    [
      'in a store, a reply of another client is foreign',
      'if call.user_id ~= user or call.client_id ~= client then return true end',
      '',
    ],
    [
      'in a store, a reply of another instance is foreign',
      "return call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance",
      'return false',
    ],
  ]),
  ...weaken('src/redis/rpc/rpc.lua', 'test/redis/rpc-late.test.ts', [
    [
      'in a store, a call past its deadline gets no reply',
      'if not call or call.observed or call.deadline_at <= now then',
      'if not call or call.observed then',
    ],
  ]),
  ...weaken('src/redis/sessions/sessions.lua', 'test/redis/sessions.test.ts', [
    ['in a store, one of two concurrent moves of a session is applied', 'body ~= expected or', 'false or'],
  ]),
  ...weaken('src/redis/sessions/sessions.lua', 'test/redis/sessions.test.ts', [
    [
      'in a store, a session does not end with an earlier one of the same id',
      'before.user_id, id)\n    forget(id)\n',
      'before.user_id, id)\n',
    ],
  ]),
  ...weaken('src/internal/rules/sites.ts', 'test/redis/sites.test.ts', [
    ['a site of another owner is not replaced', 'known && known.owner !== input.owner', 'false'],
    ['a site of another owner is not deleted', '(owner !== undefined && known.owner !== owner)', 'false'],
  ]),
  ...weaken('src/redis/store/script.ts', 'test/redis/shard-count.test.ts', [
    [
      'a store that lost its number of shards gets it again',
      'await store.confirmShards(shard)\n      return attempt()',
      'throw error',
    ],
  ]),
  ...weaken('src/redis/store/script.ts', 'test/redis/full-store.test.ts', [
    ['a script that frees memory runs in a full store', "freesMemory ? '#!lua flags=allow-oom\\n' : ''", "''"],
  ]),
  ...weaken(
    'src/redis/store/script.ts',
    ['test/redis/store.test.ts', 'test/redis/faults.test.ts'],
    [
      [
        'a store that lost its scripts gets them again',
        "if (error instanceof UnknownScript) return command(['EVAL', script.source, ...rest()])",
        '',
      ],
    ],
  ),
  ...weaken('src/redis/store/subscriber.ts', 'test/redis/listener.test.ts', [
    [
      'a reopened listener receives the topics it had before',
      'Promise.allSettled(batch.map(subscribe))',
      'Promise.allSettled(batch.map(() => subscriber))',
    ],
  ]),
  ...weaken('src/redis/store/subscriber.ts', 'test/redis/listener-links.test.ts', [
    [
      'a topic that is received again after a failure is reported',
      'if (await subscribeMissing()) onLink(true)',
      'await subscribeMissing()',
    ],
    ['a first subscription is reported to its caller only', '      starting.add(channel)\n', ''],
  ]),
  ...weaken('src/redis/subscriptions/facility.ts', 'test/redis/subscriptions.test.ts', [
    ['the streams that a node reports are bounded', '[...open].slice(0, maxReported)', '[...open]'],
    [
      'a node that closes ends its streams',
      'for (const { stream, isReported } of open) if (isReported) ended.add(stream)',
      '',
    ],
  ]),
  ...weaken('src/redis/subscriptions/facility.ts', 'test/redis/subscriptions-late.test.ts', [
    ['an ended stream is not reported afterwards', 'batch.filter((held) => open.has(held))', 'batch'],
  ]),
  ...weaken('src/redis/subscriptions/facility.ts', 'test/redis/endings.test.ts', [
    ['a closed registry of streams leaves no streams', '    open.clear()\n    if (ended', '    if (false && ended'],
  ]),
  ...weaken('src/redis/subscriptions/inspector.ts', 'test/redis/subscriptions.test.ts', [
    ['in a store, a stream of a node without heartbeats is not listed', '(until_ms <= now ? undefined : row)', 'row'],
  ]),
  ...weaken('src/redis/subscriptions/inspector.ts', 'test/redis/subscriptions.test.ts', [
    [
      'viewers that are not all reported are not counted',
      'const isShort = truncated || answers.includes(true)',
      'const isShort = false',
    ],
    [
      'viewers that cannot be read are not counted',
      'before === null || isBad || isTruncated ? null',
      'before === null ? null',
    ],
  ]),
]
