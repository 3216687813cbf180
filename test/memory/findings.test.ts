import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { findingsBattery } from '../contract/findings.js'

findingsBattery('memory', (options) => {
  const facilities = createMemoryFacilities(options)
  const now = options?.now ?? Date.now
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), now })
  return {
    facilities,
    async get(path) {
      const answer = await router(new Request(`http://localhost${path}`))
      return { status: answer.status, body: await answer.json() }
    },
  }
})
