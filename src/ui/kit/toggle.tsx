import { Button } from './button.tsx'

/** For what is over: out of the way until somebody asks for it. */
export function Toggle({ on, onChange, word }: { on: boolean; onChange(on: boolean): void; word: string }) {
  return (
    <Button kind="quiet" onClick={() => onChange(!on)}>
      {on ? 'Hide' : 'Show'} {word}
    </Button>
  )
}
