import { describe, expect, it, vi } from 'vitest'
import { ingestCooperativeSiteMessage } from '../../src/cooperative-site/index.js'
import type { Site } from '../../src/internal/contract/sites.js'
import { Refusal } from '../../src/internal/refusal.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { deferred } from './deferred.js'
import { changed, createWorld, laptop, TOPIC } from './world.js'

const ask = { signal: new AbortController().signal }

async function retained({ facilities }: Awaited<ReturnType<typeof createWorld>>, stream: string) {
  return (await facilities.history.inspector.readMessages({ stream, limit: 100 }, ask)).items
}

describe('ingesting a message of a cooperative site', () => {
  it('retains it under the canonical stream and publishes it to the current subscribers', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const message = changed({ id: 7 })
    const answer = await ingestCooperativeSiteMessage(
      { ...world, ingest: world.facilities.ingest, now: () => 0 },
      { host: { user_id: 'alice' }, message },
    )
    expect(answer).toEqual({
      accepted: true,
      duplicate: false,
      message_id: message.message_id,
      stream: TOPIC,
      published: true,
      not_published_reason: null,
    })
    expect((await reader.next()).value).toEqual({
      type: 'event',
      event: {
        event_id: message.message_id,
        name: 'note_changed',
        site_id: 'notes',
        seq: 1,
        published_at: '1970-01-01T00:00:00.000Z',
        data: { id: 7 },
      },
    })
    expect(await retained(world, TOPIC)).toMatchObject([{ message_id: message.message_id, kind: 'event', sequence: 1 }])
  })

  it("publishes nothing that the host's own ingest did not accept", async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const deps = { ...world, ingest: async () => ({ accepted: false, duplicate: false }) }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ accepted: false, published: false })
    expect(reader.pending).toBe(0)
  })

  it("treats undefined from the host's registry as an unknown site", async () => {
    const world = await createWorld()
    const deps = { ...world, ingest: world.facilities.ingest, sites: { get: async () => undefined as never } }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ published: false, not_published_reason: 'unknown_site' })
  })

  it('reports an event without subscribers as published', async () => {
    const world = await createWorld()
    const deps = { ...world, ingest: world.facilities.ingest }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ published: true, not_published_reason: null })
  })

  it.each([
    ['no user id', {}],
    ['an undefined user id', { user_id: undefined }],
    ['an empty user id', { user_id: '' }],
    ['a user id that is no string', { user_id: 7 }],
    ['no host', undefined],
  ])('refuses a message of a host with %s, and retains nothing', async (_what, host) => {
    const world = await createWorld()
    const ingest = vi.fn(world.facilities.ingest)
    const reader = world.bus.subscribe('users/undefined/sites/notes/events')
    await expect(
      ingestCooperativeSiteMessage({ ...world, ingest }, { host: host as never, message: changed() }),
    ).rejects.toMatchObject({ code: 'invalid_input', detail: expect.stringMatching(/^host(\.user_id)?: /) })
    expect(ingest).not.toHaveBeenCalled()
    expect(reader.pending).toBe(0)
  })

  it('retains nothing under a name that is invalid in queries', async () => {
    const world = await createWorld()
    const deps = { ...world, ingest: world.facilities.ingest }
    for (const stream of ['sites/notes/events\r\n', 'notes\u200b', ' ', '\ud800'])
      await expect(
        ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed(null, { stream }) }),
      ).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('differs from the ordinary ingest, which retains and publishes nothing', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    await world.facilities.ingest({ ...changed(), user_id: 'alice' })
    expect(await retained(world, TOPIC)).toHaveLength(1)
    expect(reader.pending).toBe(0)
  })

  const refused: [string, string, Parameters<typeof changed>[1], string?][] = [
    ['a command', 'not_an_event', { kind: 'command' }],
    ['another stream', 'not_site_stream', { stream: 'notes' }],
    ['a trailing slash', 'not_site_stream', { stream: 'sites/notes/events/' }],
    ['another case', 'not_site_stream', { stream: 'Sites/notes/events' }],
    ['an id that is no segment', 'not_site_stream', { stream: 'sites/a%2Fb/events' }],
    ['another spelling of the id', 'not_site_stream', { stream: 'sites/%6eotes/events' }],
    ['malformed percent-encoding', 'not_site_stream', { stream: 'sites/%ff/events' }],
    ['a canonical stream handed in as one', 'not_site_stream', { stream: TOPIC }],
    ['a site that is not there', 'unknown_site', { stream: 'sites/nope/events' }],
    ['a site of another owner', 'owner_mismatch', { client_id: 'pc', instance_id: 'pc-1' }, 'mallory'],
    ['no payload', 'invalid_event_name', { payload: undefined }],
    ['a payload that is no object', 'invalid_event_name', { payload: 'note_changed' }],
    ['a name that is no text', 'invalid_event_name', { payload: { name: 7 } }],
    ['an empty name', 'invalid_event_name', { payload: { name: '' } }],
    ['a name with a line break', 'invalid_event_name', { payload: { name: 'note_changed\r\n' } }],
    ['a name of 10 KiB', 'invalid_event_name', { payload: { name: 'a'.repeat(10_240) } }],
    ['a name of the language', 'invalid_event_name', { payload: { name: '__proto__' } }],
    ['a name that is not in the list', 'event_not_allowed', { payload: { name: 'note_removed' } }],
  ]
  it.each(refused)('retains %s and publishes nothing: %s', async (_, reason, change, user = 'alice') => {
    const world = await createWorld()
    await world.facilities.connections.connect({
      user_id: 'mallory',
      client_id: 'pc',
      instance_id: 'pc-1',
      client_type: 'console',
    })
    const reader = world.bus.subscribe(TOPIC)
    const deps = { ...world, ingest: world.facilities.ingest }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: user }, message: changed(1, change) })
    expect(answer).toMatchObject({ accepted: true, published: false, not_published_reason: reason })
    expect(answer.stream.startsWith(`users/${user}/`)).toBe(true)
    expect(await retained(world, answer.stream)).toHaveLength(1)
    expect(reader.pending).toBe(0)
  })

  it('accepts any valid name when the list is empty', async () => {
    const world = await createWorld()
    await world.sites.put({ site_id: 'notes', owner: 'alice', mode: 'observe' })
    const deps = { ...world, ingest: world.facilities.ingest }
    const message = changed(1, { payload: { name: 'Anything.at-all_9' } })
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message })
    expect(answer.published).toBe(true)
  })

  it('publishes a repeated message once', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const deps = { ...world, ingest: world.facilities.ingest }
    const message = changed()
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () => ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message })),
    )
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(answers.filter(({ not_published_reason }) => not_published_reason === 'duplicate')).toHaveLength(999)
    expect(reader.pending).toBe(1)
    expect(await retained(world, TOPIC)).toHaveLength(1)
  })

  it('never publishes what the ordinary ingest refuses', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const deps = { ...world, ingest: world.facilities.ingest }
    const send = (message: ReturnType<typeof changed>) =>
      ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message })
    await expect(send(changed(1, { instance_id: 'laptop-0' }))).rejects.toMatchObject({ code: 'stale_instance' })
    await expect(send(changed(1, { message_id: 'a\nb' }))).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(send({ ...changed(1), payloda: {} } as never)).rejects.toMatchObject({
      code: 'invalid_input',
      detail: 'Unknown field "payloda". Did you mean "payload"?',
    })
    expect(reader.pending).toBe(0)
    expect(await retained(world, TOPIC)).toEqual([])
  })

  it('refuses a payload nested deeper than 32 levels before the ingest', async () => {
    const world = await createWorld()
    let deep: unknown = null
    for (let n = 0; n < 40; n++) deep = [deep]
    const deps = { ...world, ingest: async () => ({ accepted: true, duplicate: false }) }
    const ingest = ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed(deep) })
    await expect(ingest).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('retains a message whose publication fails, and reports it', async () => {
    const world = await createWorld()
    const errors: unknown[] = []
    const failing = {
      publish: () => {
        throw new Refusal('unavailable')
      },
    }
    const deps = { ...world, ingest: world.facilities.ingest, bus: failing, onError: (e: unknown) => errors.push(e) }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ accepted: true, published: false, not_published_reason: 'bus_unavailable' })
    expect(await retained(world, TOPIC)).toHaveLength(1)
    expect(errors).toMatchObject([{ code: 'unavailable' }])
  })

  it('publishes nothing when the site is found after the response was sent', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const found = deferred<Site | null>()
    const deps = { ...world, ingest: world.facilities.ingest, sites: { get: () => found.promise }, projectionMs: 5 }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ accepted: true, published: false, not_published_reason: 'bus_unavailable' })
    found.resolve(await world.sites.get('notes'))
    await flushPromises()
    expect(reader.pending).toBe(0)
  })

  it.each(badHooks)('gives the same answer when the hook for failed publications %s', async (_, onError) => {
    const world = await createWorld()
    const bus = { publish: () => Promise.reject(new Error('secret')) }
    const deps = { ...world, ingest: world.facilities.ingest, bus, onError }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'alice' }, message: changed() })
    expect(answer).toMatchObject({ accepted: true, published: null, not_published_reason: 'unknown' })
    await flushPromises()
  })

  it('takes the user only from the authenticated host', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    await world.facilities.connections.connect({ ...laptop, user_id: 'mallory', client_type: 'console' })
    const deps = { ...world, ingest: world.facilities.ingest }
    const forged = { ...changed(1, { payload: { name: 'note_changed', owner: 'alice' } }), user_id: 'alice' }
    const answer = await ingestCooperativeSiteMessage(deps, { host: { user_id: 'mallory' }, message: forged })
    expect(answer.stream).toBe('users/mallory/sites/notes/events')
    expect(answer.published).toBe(false)
    expect(reader.pending).toBe(0)
  })
})
