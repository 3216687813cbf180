/** Metrics, tools for agents and incident files over inspectors that know only what is required of them. */
import { expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { incidentComposition } from '../../src/incident/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createSubject } from '../diagnostics/subject.js'
import { createWorld } from '../diagnostics/world.js'
import { askRouter, HEADERS } from '../incident/subject.js'
import { fetchRoute } from '../mcp/subject.js'
import { subject as metrics, OPEN, request } from '../metrics/subject.js'
import { bare, leavingOut } from './unknown.js'

const inspectors = leavingOut(createFakeInspectors(bare(createWorld())))

it('metrics have no series of unknown numbers', async () => {
  const errors: unknown[] = []
  const answer = await metrics({ inspectors, onError: (error) => errors.push(error) })(request({ accept: OPEN }))
  const text = await answer.text()
  expect([answer.status, errors]).toEqual([200, []])
  expect(text).toMatch(/^relayscope_source_up\{source="delivery"\} 1$/m)
  expect(text).not.toMatch(/NaN|null|^relayscope_delivery_tracked_commands /m)
})

it.each([
  ['relay_overview', {}],
  ['explain_findings', {}],
  ['user_summary', { user_id: 'alice' }],
  ['search', { q: 'alice' }],
  ['command_evidence', { user_id: '-', client_id: '-', command_id: 'cmd-2' }],
  ['explain_command', { user_id: '-', client_id: '-', command_id: 'cmd-2' }],
])('the tool %s answers', async (tool, given) => {
  const { isError, text } = await fetchRoute({ router: createSubject({ inspectors }) }, tool, given)
  expect([isError, text]).toEqual([false, expect.not.stringMatching(/NaN|undefined|Invalid/)])
})

it('an incident file answers as its router did', async () => {
  const router = createSubject({ inspectors })
  const incident = await captureIncident(router, { headers: HEADERS })
  const replay = createDiagnosticsRouter({ ...incidentComposition(incident), auth: noopAuth(), onError: null })
  for (const path of [
    '/connections',
    '/contexts',
    '/browser-windows',
    '/delivery/nodes',
    '/delivery/tenants',
    '/sites',
  ])
    expect(await askRouter(replay, path), path).toEqual(await askRouter(router, path, HEADERS))
})
