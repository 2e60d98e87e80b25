from ase.build import molecule
from ase.parallel import parprint
from gpaw import GPAW

for shift in 0.0, 0.02, 0.04:
    water = molecule("H2O", vacuum=3.0)
    water.positions[1, 1] += shift
    water.calc = GPAW(mode="fd", h=0.25, xc="LDA", txt="-", convergence={"density": 1e-7}, parallel={"domain": 2})
    parprint("energy", repr(water.get_potential_energy()))
    for force in water.get_forces().tolist():
        parprint("force", force)
