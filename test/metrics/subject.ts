/** The metrics under test over a world of plain data, and how the tests scrape them. */
import { expect } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMetrics, type MetricsOptions } from '../../src/metrics/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'
import { parseText, seriesValue } from './parse.js'

export const OPEN = 'application/openmetrics-text; version=1.0.0'
export const never = () => new Promise<never>(() => {})

export const subject = (options: Partial<MetricsOptions> = {}) =>
  createMetrics({ inspectors: createFakeInspectors(createWorld()), auth: noopAuth(), onError: null, ...options })

export const request = (headers: Record<string, string> = {}, path = '/metrics', init: RequestInit = {}) =>
  new Request(`http://localhost${path}`, { headers, ...init })

export async function scrape(options: Partial<MetricsOptions> = {}) {
  const response = await subject(options)(request({ accept: OPEN }))
  expect(response.status).toBe(200)
  return parseText(await response.text(), true)
}

/** `inspectors` of the world with one of them changed. */
export const changed = (change: (inspectors: Required<Inspectors>) => Inspectors): Inspectors => {
  const inspectors = createFakeInspectors(createWorld())
  return { ...inspectors, ...change(inspectors as Required<Inspectors>) }
}

export const up = (families: Awaited<ReturnType<typeof scrape>>, source: string) =>
  seriesValue(families, 'relayscope_source_up', { source })
