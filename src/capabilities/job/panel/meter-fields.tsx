import { TextField } from '../../../ui/kit/field.tsx'
import { METER, METERS, type Meter } from './amounts.ts'

/** As typed: an empty field limits nothing. */
export type MeterTexts = Record<Meter, string>

export const NO_LIMITS: MeterTexts = { minutes: '', turns: '', tokens: '', cost_usd: '' }

interface Props {
  value: MeterTexts
  onChange(value: MeterTexts): void
  /** What the program counts; default: everything. A limit that nobody can keep is not offered. */
  counted?: string[]
}

export function MeterFields({ value, onChange, counted }: Props) {
  return (
    <div className="form-row meters">
      {METERS.filter((meter) => !counted || counted.includes(METER[meter].counted)).map((meter) => (
        <TextField
          key={meter}
          label={METER[meter].label}
          type="number"
          min={0}
          step={METER[meter].whole ? 1 : 'any'}
          inputMode="decimal"
          placeholder="No limit"
          value={value[meter]}
          onChange={(event) => onChange({ ...value, [meter]: event.target.value })}
        />
      ))}
    </div>
  )
}

export function limitsOf(texts: MeterTexts): Partial<Record<Meter, number>> {
  return Object.fromEntries(METERS.flatMap((meter) => (texts[meter].trim() === '' ? [] : [[meter, Number(texts[meter])]])))
}
