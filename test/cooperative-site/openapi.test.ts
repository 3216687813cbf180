/** The relay's document: what it owes its readers, and that its frames are what a stream carries. What it answers is held by `world.ts`. */
import { describe, expect, it } from 'vitest'
import type * as z from 'zod'
import { cooperativeSiteOpenApi } from '../../src/cooperative-site/index.js'
import { RELAY_ROUTES } from '../../src/cooperative-site/relay-routes.js'
import { EndFrame, GapFrame, ReadyFrame, SiteEvent } from '../../src/internal/contract/event-bus.js'
import { dangling, expectDescribed, expectProblems, operationsOf, undescribed, unnamed } from '../openapi.js'
import { changed, createWorld, TOPIC } from './world.js'

const document = cooperativeSiteOpenApi({ prefix: '/relay' })
const operations = RELAY_ROUTES.flatMap(({ path, methods }) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
)

describe('the document of the relay', () => {
  it('has every route under its prefix', () => {
    expect(
      operationsOf(document)
        .map(([name]) => name)
        .sort(),
    ).toEqual(operations.map(({ name }) => name).sort())
    expect(document.servers).toEqual([{ url: '/relay' }])
    expect(cooperativeSiteOpenApi().servers).toEqual([{ url: '/' }])
    expect(() => cooperativeSiteOpenApi({ prefix: 'relay' })).toThrow(TypeError)
  })

  it('names and describes every schema and field', () => {
    expect([...unnamed(document), ...undescribed(document), ...dangling(document)]).toEqual([])
    expectProblems(document)
  })

  it.each(operations)('has valid examples of the request and response of $name', ({ operation: { body, answers } }) => {
    if (body) expect(body.schema.parse(body.example)).toEqual(body.example)
    for (const { schema, example } of Object.values(answers)) if (schema) expect(schema.parse(example)).toEqual(example)
  })

  it('describes the event stream and the data of each event', () => {
    const [, watching] = operationsOf(document).find(([name]) => name.startsWith('GET /sessions/')) ?? []
    const { schema } = watching?.responses['200'].content['text/event-stream'] ?? {}
    expect(schema).toMatchObject({ type: 'string', contentMediaType: 'text/event-stream' })
    const frames = schema.contentSchema.oneOf as { properties: { event: { const: string }; data: { $ref: string } } }[]
    expect(frames.map(({ properties: { event, data } }) => [event.const, data.$ref])).toEqual([
      ['ready', '#/components/schemas/ReadyFrame'],
      ['site_event', '#/components/schemas/SiteEvent'],
      ['gap', '#/components/schemas/GapFrame'],
      ['end', '#/components/schemas/EndFrame'],
    ])
  })
})

const [, watching] = operationsOf(document).find(([name]) => name.startsWith('GET /sessions/')) ?? []
const shownFrames: string = watching?.responses['200'].content['text/event-stream'].example
const FRAMES: Record<string, z.ZodObject> = { ready: ReadyFrame, site_event: SiteEvent, gap: GapFrame, end: EndFrame }

/** The frames of `text`, each with the name of its event. */
const framesOf = (text: string) =>
  [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, event, data]) => ({
    event: event as string,
    data: JSON.parse(data as string),
  }))

it('a stream sends exactly the documented frames, each valid in its schema', async () => {
  const world = await createWorld()
  const { position } = world.bus.subscribe(TOPIC)
  await world.ask('alice', 'POST', '/messages', { body: changed(1) })
  const response = await world.ask('bob', 'GET', `/sessions/${world.session_id}/events`, {
    headers: { 'last-event-id': `${position.epoch}:0` },
  })
  await world.ask('alice', 'POST', '/messages', { body: changed(2) })
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (chunk.includes('event: site_event')) await world.sessions.close(world.session_id)
  }
  const frames = framesOf(text)
  expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(Object.keys(FRAMES)))
  for (const { event, data } of frames) expect(FRAMES[event]?.strict().parse(data)).toEqual(data)
  for (const { event, data } of framesOf(shownFrames)) expect(FRAMES[event]?.strict().parse(data)).toEqual(data)
})

it.each([
  ['a status', { status: 418, type: 'application/json', body: {} }],
  ['a media type', { status: 202, type: 'text/plain' }],
  ['a code', { status: 409, type: 'application/problem+json', body: { code: 'owner_mismatch' } }],
])('the check finds %s that no operation documents', (_what, answer) => {
  expect(() => expectDescribed(document, { method: 'POST', path: '/messages', ...answer })).toThrow()
})
