import { describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { incidentComposition } from '../../src/incident/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { askRouter, createOriginal, HEADERS as headers, questionsAbout, timeless } from './subject.js'

const open = (file: string | object) =>
  createDiagnosticsRouter({ ...incidentComposition(file), auth: noopAuth(), prefix: '/elsewhere' })

describe('captureIncident', () => {
  it('makes a file from which every route answers what the original answered', async () => {
    const router = createOriginal()
    const incident = await captureIncident(router, { headers })
    const text = JSON.stringify(incident)
    const replay = open(text)
    const questions = questionsAbout(incident, await askRouter(router, '/openapi.json', headers))
    expect(questions.length).toBeGreaterThan(60)
    for (const question of questions) {
      const [then, now] = [await askRouter(router, question, headers), await askRouter(replay, question)]
      expect({ question, ...now, body: timeless(now.body) }).toEqual({ question, ...then, body: timeless(then.body) })
    }
  })
})
