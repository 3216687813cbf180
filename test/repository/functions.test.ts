/** That no function grows beyond a page unnoticed. */
import { expect, it } from 'vitest'
import { LONG_FUNCTIONS, longFunctions } from './functions.js'

it('every function over 100 lines is named with its reason, and every name is still that long', () => {
  expect(longFunctions().sort()).toEqual(Object.keys(LONG_FUNCTIONS).sort())
})
