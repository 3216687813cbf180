/** What any command dispatcher must hold, over memory and over a shared store alike. */
import { expect, it } from 'vitest'
import { acknowledgedEndContract } from './delivery-acknowledged-end.js'
import { acknowledgementContract } from './delivery-acknowledgement.js'
import { admissionContract } from './delivery-admission.js'
import { answersContract } from './delivery-answers.js'
import { command, connection, first } from './delivery-commands.js'
import { endContract } from './delivery-end.js'
import { handoverContract } from './delivery-handover.js'
import { inspectionContract } from './delivery-inspection.js'
import { listContract } from './delivery-list.js'
import { recoveryContract } from './delivery-recovery.js'
import { createSubject, type DispatcherSettings, type TestedDispatcher } from './delivery-subject.js'

/** @param make a dispatcher whose wall clock is `now`; it is closed after each test. */
export function deliveryContract(make: (settings: DispatcherSettings) => TestedDispatcher | Promise<TestedDispatcher>) {
  const subject = createSubject(make)
  const { dispatcher } = subject

  admissionContract(subject)
  handoverContract(subject)
  recoveryContract(subject)
  acknowledgementContract(subject)
  endContract(subject)
  acknowledgedEndContract(subject)
  inspectionContract(subject)
  listContract(subject)
  answersContract(subject)

  it('refuses commands and waiters once it is closed, and can be closed twice', async () => {
    await dispatcher.close()
    await dispatcher.close()
    await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'closed' })
    await expect(dispatcher.attach(first, connection().deliver)).rejects.toMatchObject({ code: 'closed' })
  })
}
