import { describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { incidentComposition } from '../../src/incident/index.js'
import type { CapturedRouter } from '../../src/incident/source.js'
import { type ConnectInput, createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { askRouter, createOriginal, HEADERS as headers, questionsAbout, timeless } from './subject.js'

const open = (file: string | object) =>
  createDiagnosticsRouter({ ...incidentComposition(file), auth: noopAuth(), prefix: '/elsewhere' })

/** Answers to questions, and the routes that none of them got a row or an answer from. */
async function ask(router: CapturedRouter, questions: readonly string[]) {
  const answers: Awaited<ReturnType<typeof askRouter>>[] = []
  const { body } = await askRouter(router, '/openapi.json', headers)
  const empty = new Set(Object.keys((body as { paths: object }).paths).filter((path) => !NOT_CAPTURED.includes(path)))
  for (const question of questions) {
    const [path = ''] = question.split('?')
    const routes = [...empty].filter((each) => new RegExp(`^${each.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
    const answer = await askRouter(router, question, headers)
    answers.push(answer)
    const { items } = answer.body as { items?: unknown[] }
    if (answer.status === 200 && items?.length !== 0) for (const route of routes) empty.delete(route)
  }
  return { answers, empty: [...empty] }
}

/** A description of the router, and a stream. */
const NOT_CAPTURED = ['/openapi.json']

describe('captureIncident', () => {
  it('makes a file from which every route answers what the original answered', async () => {
    const router = createOriginal()
    const incident = await captureIncident(router, { headers })
    const text = JSON.stringify(incident)
    const replay = open(text)
    const questions = questionsAbout(incident, await askRouter(router, '/openapi.json', headers))
    expect(questions.length).toBeGreaterThan(60)
    // A new route is covered by this test only if the world of the tests has rows for it.
    const { answers, empty } = await ask(router, questions)
    expect(empty).toEqual([])
    for (const [i, question] of questions.entries()) {
      const [then, now] = [answers[i] as (typeof answers)[number], await askRouter(replay, question)]
      expect({ question, ...now, body: timeless(now.body) }).toEqual({ question, ...then, body: timeless(then.body) })
    }
  })

  it('keeps what each user says of an action, which the list of all users shows of the latest connection alone', async () => {
    const facilities = createMemoryFacilities()
    const connect = (user_id: string, actions: ConnectInput['actions']) =>
      facilities.connections.connect({ user_id, client_id: 'c', instance_id: 'i', client_type: 'web', actions })
    const described = { name: 'go', description: 'starts it', parameters_schema: { type: 'object' } }
    await connect('ada', [described])
    await connect('bob', ['go', 'stop'])
    const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth() })
    const replay = open(JSON.stringify(await captureIncident(router)))
    for (const query of [
      '',
      '?user_id=ada',
      '?user_id=bob',
      '?user_id=ada&client_type=web',
      '?client_type=web',
      '?user_id=eve',
    ]) {
      const [then, now] = [await askRouter(router, `/actions${query}`), await askRouter(replay, `/actions${query}`)]
      expect({ query, ...now, body: timeless(now.body) }).toEqual({ query, ...then, body: timeless(then.body) })
    }
    expect(await askRouter(replay, '/actions?user_id=ada')).toMatchObject({ body: { items: [described] } })
    await facilities.close()
  })
})
